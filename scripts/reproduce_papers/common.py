# SPDX-License-Identifier: MIT
"""Common parts of the four papers: the list of their tables and figures, functions that run tools and benchmarks,
scenes, printing."""
import json
import pathlib
import statistics
import subprocess
import sys

try:  # most tables need neither, and also run where GDAL has no Python, for example in a bundle for GPUs
    import numpy
    from osgeo import gdal, ogr
    gdal.UseExceptions()
except ImportError:
    numpy = gdal = ogr = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
METRICS = ("overall_accuracy", "average_accuracy", "kappa")
ITEMS = {}  # ("001", "table7") -> Item
NO_GPU = "Run it on a machine with an NVIDIA GPU, with the benchmarks built (-DHSI_BENCHMARKS=ON)."


class Missing(Exception):
    """An input of the table is missing; `advice` names the option for it."""

    def __init__(self, what, advice):
        super().__init__(what)
        self.advice = advice


class Item:
    """A table or figure: its number in the paper, its subject, its inputs and the function that repeats it."""

    def __init__(self, function, title, needs):
        self.function, self.title, self.needs = function, title, needs


def item(paper, name, title, needs="nothing"):
    def register(function):
        ITEMS[paper, name] = Item(function, title, needs)
        return function
    return register


class Result:
    """Tables as text, notes, and a figure's picture, with all their numbers for --json."""

    def __init__(self):
        self.tables, self.notes, self.data, self.picture = [], [], None, None

    def table(self, caption, columns, rows):
        self.tables.append({"caption": caption, "columns": list(columns), "rows": [list(r) for r in rows]})
        return self

    def note(self, text):
        self.notes.append(text)
        return self

    def print(self):
        for table in self.tables:
            rows = [table["columns"], *([cell(c) for c in row] for row in table["rows"])]
            widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(rows[0]))]
            lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |" for row in rows]
            lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
            print(table["caption"] + "\n\n" + "\n".join(lines) + "\n")
        for text in self.notes:
            print(text)
        if self.picture:
            print(f"Figure: {self.picture}")

    def write(self, path, paper, name):
        path.write_text(json.dumps({"paper": paper, "item": name, "tables": self.tables, "notes": self.notes,
                                    "data": self.data}, indent=2) + "\n")


def cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def mean_spread(values):
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


class Run:
    """One call: its options, a folder for intermediate files, and the tools."""

    def __init__(self, args, folder):
        self.args, self.folder = args, pathlib.Path(folder)
        self.png = args.png

    def path(self, name):
        return self.folder / name

    def program(self, name):
        """Returns an executable from the folder of --bin, or from a bundle for GPUs."""
        places = [self.args.bin, ROOT / "libexec", ROOT / "benchmarks"]
        return next((p / name for p in places if (p / name).exists()), self.args.bin / name)

    def has(self, name):
        return self.program(name).exists()

    def _run(self, program, words):
        if not pathlib.Path(program).exists():
            raise Missing(f"'{program}' is not there",
                          "Name the folder of the executables with --bin; benchmarks are built by -DHSI_BENCHMARKS=ON.")
        return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, check=False)

    def tool(self, name, *words):
        done = self._run(self.program(name), words)
        if done.returncode != 0:
            raise Missing(f"{name} failed: {done.stderr.strip()}", "The command was: " + " ".join(map(str, done.args)))
        return done.stdout

    def report(self, name, *words):
        """Runs a tool and returns its -report."""
        self.tool(name, "-q", "-overwrite", "-report", self.path("report.json"), *words)
        return json.loads(self.path("report.json").read_text())

    def google(self, name, expression):
        """Returns the rows of a Google Benchmark program."""
        done = self._run(self.program(name), [f"--benchmark_filter={expression}", "--benchmark_format=json",
                                                "--benchmark_min_time=0.05"])
        if done.returncode != 0:
            raise Missing(f"{name} failed: {done.stderr.strip()}", "")
        return json.loads(done.stdout)["benchmarks"]

    def bench(self, name, *words, advice=NO_GPU):
        """Returns a benchmark's output; raises Missing if it fails, as benchmarks of GPU kernels do without a GPU."""
        done = self._run(self.program(name), words)
        if done.returncode != 0:
            why = (done.stderr or done.stdout).strip().splitlines()
            raise Missing(f"{name} measured nothing: {why[0] if why else 'no message'}", advice)
        return done.stdout

    def gpu_or_note(self, result, name, *words):
        """Does the same as bench, but returns None and adds a note to the result, for tables whose other half needs no
        GPU."""
        try:
            return self.bench(name, *words)
        except Missing as e:
            result.note(f"No GPU figures: {e}. {e.advice}")
            return None

    def real_scene(self, what, labels=False):
        """Returns the user's scene (and labels), which a paper's table of accuracies requires."""
        if not self.args.scene or (labels and not self.args.labels):
            raise Missing(f"this needs the scene {what}, which the suite does not bring",
                          "Give --scene FILE" + (" and --labels FILE" if labels else "") + ".")
        for path in [self.args.scene, *([self.args.labels] if labels else [])]:
            if not path.exists():
                raise Missing(f"'{path}' is not there", "Give --scene FILE" + (" and --labels FILE" if labels else ""))
        return self.args.scene

    def scene_or_synthetic(self, result, size, *options):
        """Returns the user's scene, otherwise a scene of gdal_hsi_synth with the paper's size or that of --size."""
        if self.args.scene:
            self.real_scene("")
            result.note(f"Scene: {self.args.scene.name}")
            return self.args.scene
        size = self.args.size or size
        target = self.path("scene.dat")
        self.tool("gdal_hsi_synth", "-q", "-overwrite", "-of", "ENVI", "-size", *size, *options, target)
        result.note(f"Scene: synthetic (gdal_hsi_synth), {size[0]} x {size[1]} pixels, {size[2]} bands")
        return target

    def split(self, counts, seed):
        """Returns training and test labels of one random split."""
        words = [w for n in counts for w in ("-n", n)]
        train, test = self.path("train.tif"), self.path("test.tif")
        self.tool("gdal_hsi_sample", "-q", "-overwrite", *words, "-seed", seed, self.args.labels, train, test)
        return train, test

    def accuracy(self, mapped, test):
        return json.loads(self.tool("gdal_hsi_accuracy", "-json", mapped, test))

    def values(self, default, kind=int):
        """Returns the positions along a figure's axis or a table's columns: --values, otherwise the paper's."""
        if self.args.values is None:
            return list(default)
        try:
            return [kind(v) for v in self.args.values.split(",")]
        except ValueError:
            raise Missing(f"--values: '{self.args.values}' is no list of numbers", "Such as 1,2,4") from None

    def progress(self, text):
        print(text, file=sys.stderr)


def needs_arrays():
    """Raises Missing for functions that read rasters themselves if GDAL's Python or numpy is missing."""
    if gdal is None:
        raise Missing("this reads rasters by GDAL's Python and numpy, which are not there",
                      "Install them: python3-gdal of Debian and Ubuntu.")


def percent(judged):
    return {m: 100 * judged[m]["value"] for m in METRICS}


def seconds_of_passes(report):
    return {p["name"]: p["seconds"] for p in report["passes"]}


def size_of(path):
    dataset = gdal.Open(str(path))
    return dataset.RasterXSize, dataset.RasterYSize, dataset.RasterCount
