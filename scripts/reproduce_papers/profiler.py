# SPDX-License-Identifier: MIT
"""Measurements that only NVIDIA's profilers can make: counters of kernels by Nsight Compute (ncu), shares of time by
Nsight Systems (nsys)."""
import csv
import shutil
import statistics
import subprocess

from .common import Missing, NO_GPU

# Kernel -> the paper's figures, in the order of the columns.
OCCUPANCY = {
    "title": "Table IV", "columns": ("theoretical", "achieved", "threads per block", "registers", "KiB per block"),
    "metrics": ("sm__maximum_warps_per_active_cycle_pct", "sm__warps_active.avg.pct_of_peak_sustained_active",
                "launch__block_size", "launch__registers_per_thread", "launch__shared_mem_per_block_static"),
    "derive": lambda a, b, c, d, e: (a / 100, b / 100, c, d, e / 1024),
    "paper": {"apply_row_conv": (0.94, 0.76, 164, 32, 1.28), "apply_col_conv": (1, 0.93, 256, 32, 11),
              "scharr": (0.94, 0.78, 612, 22, 9.56), "reduce_max": (1, 0.84, 1024, 32, 0),
              "create_histogram": (0.75, 0.74, 512, 35, 2), "pm2_coefficients": (1, 0.83, 256, 24, 0),
              "fed_nld_step": (1, 0.83, 512, 25, 7.97), "fed_nld_update": (1, 0.80, 512, 10, 0)}}
EFFICIENCY = {
    "title": "Table V", "columns": ("global load", "global store", "shared", "warp execution", "non-predicated"),
    "metrics": ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
                "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
                "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
                "smsp__thread_inst_executed_per_inst_executed.ratio",
                "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"),
    "derive": lambda a, b, c, d, e: (a / 100, b / 100, c / 100, d / 32, e / 32),
    "paper": {"apply_row_conv": (0.64, 1, 0.95, 0.93, 0.82), "apply_col_conv": (0.72, 1, 0.97, 0.97, 0.86),
              "scharr": (0.78, 0.94, 0.92, 0.94, 0.92), "reduce_max": (0.88, None, None, 0.74, 0.72),
              "create_histogram": (1, None, 0.09, 0.97, 0.94), "pm2_coefficients": (1, 1, None, 1, 0.97),
              "fed_nld_step": (0.78, 0.95, 0.92, 0.95, 0.94), "fed_nld_update": (1, 1, None, 0.98, 0.95)}}
_ADD, _MUL, _FMA = (f"smsp__sass_thread_inst_executed_op_d{op}_pred_on.sum" for op in ("add", "mul", "fma"))
# The peak: fused products that the processors could start in the kernel's cycles, with two operations each.
THROUGHPUT = {
    "title": "Table VI", "columns": ("GFLOPS, double", "GFLOPS, of the peak", "GB/s", "GB/s, of the peak"),
    "metrics": (_ADD, _MUL, _FMA, "dram__bytes.sum", "gpu__time_duration.sum",
                "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", "sm__cycles_elapsed.avg"),
    "derive": lambda add, mul, fma, moved, ns, share, most, cycles: (
        (add + mul + 2 * fma) / ns, (add + mul + 2 * fma) / (2 * most * cycles), moved / ns, share / 100),
    "paper": {"apply_row_conv": (20.94, 0.15, 81.25, 0.42), "apply_col_conv": (6.95, 0.05, 96.42, 0.50),
              "scharr": (59.98, 0.44, 82.23, 0.43), "reduce_max": (0, 0, 46.61, 0.24),
              "create_histogram": (24.43, 0.18, 81.23, 0.42), "pm2_coefficients": (66.06, 0.48, 114.04, 0.59),
              "fed_nld_step": (85.24, 0.62, 65.37, 0.34), "fed_nld_update": (6.37, 0.05, 142.35, 0.74)}}


def found(name):
    program = shutil.which(name)
    if not program:
        raise Missing(f"the profiler {name} is not in PATH", f"Install it (CUDA Toolkit). {NO_GPU}")
    return program


def call(command):
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Missing(f"{command[0]} measured nothing: {why[-1] if why else 'no message'}", NO_GPU)
    return done.stdout


def table_of(output, first):
    """Returns the rows of a table in CSV that begins, after other output of a program, with the column `first`."""
    lines = output.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith((first, f'"{first}"'))), None)
    if at is None:
        raise Missing("the profiler saw no kernel", NO_GPU)
    end = next((i for i in range(at + 1, len(lines)) if not lines[i].strip()), len(lines))
    return list(csv.DictReader(lines[at:end]))


def counters(kernels, metrics, command, launches=600):
    """Returns {kernel: {metric: mean over its launches}}."""
    # Others may use the device, so its clocks are not changed.
    output = call([found("ncu"), "--csv", "--print-units", "base", "--clock-control", "none", "--metrics", ",".join(metrics),
                   "--kernel-name", "regex:" + "|".join(kernels), "--launch-count", launches, *command])
    seen = {}
    for row in table_of(output, "ID"):
        kernel = next((k for k in kernels if k in row["Kernel Name"]), None)
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:  # n/a: the kernel has no such access
            continue
        if kernel:
            seen.setdefault(kernel, {}).setdefault(row["Metric Name"], []).append(value)
    return {k: {m: statistics.mean(v) for m, v in values.items()} for k, values in seen.items()}


def eadp_kernels(run, which):
    """Returns rows of a table of paper 001's kernels: our implementation of them on this machine, then the paper's
    figures."""
    if not run.has("eadp_cuda_bench"):
        raise Missing("eadp_cuda_bench is not among the executables", NO_GPU)
    seen = counters(list(which["paper"]), which["metrics"],
                    [run.program("eadp_cuda_bench"), "-repeat", 1, "-size", 1905, 349, 7])
    rows = []
    for kernel, paper in which["paper"].items():
        values = seen.get(kernel, {})
        nan = float("nan")
        here = which["derive"](*(values.get(m, nan) for m in which["metrics"]))
        rows.append((kernel, *(None if v != v else v for v in here), *paper))
    return rows


def shares(run, command):
    """Returns [(name, calls, nanoseconds)] of kernels and copies on the device, by Nsight Systems."""
    record = run.path("profile.nsys-rep")
    nsys = found("nsys")
    call([nsys, "profile", "--force-overwrite=true", "-t", "cuda", "-o", record, *command])
    rows = []
    for report, name in (("cuda_gpu_kern_sum", "Name"), ("cuda_gpu_mem_time_sum", "Operation")):
        output = call([nsys, "stats", "--force-export=true", "--report", report, "--format", "csv", "--output", "-", record])
        table = table_of(output, "Time (%)")
        count = "Instances" if "Instances" in table[0] else "Count"
        rows += [(row[name], int(row[count]), float(row["Total Time (ns)"])) for row in table]
    return rows
