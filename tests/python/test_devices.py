# SPDX-License-Identifier: MIT
"""Arrays on a device. Without a device: refused input and its messages. With a GPU and PyTorch: results on the device,
equal to the CPU's within the tools' tolerance, of the input's type and in the caller's layout; and the amount of data
on the bus.
"""
import json
import sys
import threading

import numpy as np
import pytest

import gdal_hsi as hsi
from gdal_hsi import _devices


def cube(samples, lines, bands):
    """Returns fields of four materials, mixed, unevenly lit, with noise. This file also runs without GDAL."""
    random = np.random.default_rng(5)
    materials = 0.3 + np.abs(np.cumsum(random.normal(0, 0.15, (4, bands)), axis=1))
    field = (np.arange(lines)[:, None] // 7 + np.arange(samples)[None, :] // 5) % 4
    light = random.uniform(0.5, 1.5, (lines, samples))
    data = np.moveaxis(materials[field], 2, 0) * light + random.normal(0, 0.02, (bands, lines, samples))
    return np.ascontiguousarray(np.maximum(data, 0.01), np.float32)


class Foreign:
    """An array on a device as another library presents it."""

    def __init__(self, array, number=0, **facts):
        self.array, self.number = array, number
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "version": 3, "strides": None,
                                         "data": (array.ctypes.data, False), **facts}
        self.dtype, self.ndim, self.shape = array.dtype, array.ndim, array.shape

    def __dlpack_device__(self):
        return (2, self.number)

    def transpose(self, axes):
        return self._seen(self.array.transpose(axes))

    def __getitem__(self, key):
        return self._seen(self.array[key])

    def _seen(self, part):
        moved = part.ctypes.data - self.array.ctypes.data
        return Foreign(part, self.number, strides=part.strides, data=(self.__cuda_array_interface__["data"][0] + moved, False))

    def __setitem__(self, key, value):
        self.array[key] = value


def have_gpu():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


needs_gpu = pytest.mark.skipif(not have_gpu(), reason="no GPU with PyTorch")


# Without a GPU

def test_layout_of_an_array_on_a_device():
    """Checks shapes, strides and pointers for axes in other orders, also if the interface omits the strides."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    array = _devices.DeviceArray(Foreign(x))
    assert (array.shape, array.strides, array.dtype, array.device) == ((2, 3, 4), (48, 16, 4), np.float32, 0)
    turned = array.transpose((2, 0, 1))
    assert (turned.shape, turned.strides) == ((4, 2, 3), (4, 48, 16)) and turned.owner.array.base is not None
    assert array[1].pointer == array.pointer + 48 and array[1].T.shape == (4, 3)


@pytest.mark.skipif(have_gpu(), reason="there is a device")
def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(hsi.UsageError, match="src is declared to be in the memory of CUDA device 0, but there is no CUDA device"):
        hsi.spp(Foreign(cube(20, 20, 6)))


def test_kinds_that_are_no_numbers_are_refused():
    with pytest.raises(hsi.UsageError, match="src has values of type complex64"):
        hsi.spp(Foreign(np.ones((3, 4, 5), np.complex64)))
    with pytest.raises(hsi.UsageError, match="src has no values"):
        hsi.spp(Foreign(np.ones((3, 0, 5), np.float32)))


def test_dlpack_alone_says_what_to_import(monkeypatch):
    class Capsule:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, stream=None):
            raise AssertionError

    monkeypatch.setattr(_devices, "MODULES_THAT_TAKE", ())
    with pytest.raises(hsi.UsageError, match="supports only DLPack") as told:
        hsi.spp(Capsule())
    assert "Import torch or cupy" in told.value.advice


# With a GPU

@pytest.fixture
def torch():
    import torch
    return torch


def scene(samples=96, lines=70, bands=24):
    return cube(samples, lines, bands)


def close(there, here, tolerance=1e-4):
    values = there.cpu().numpy()
    assert values.shape == here.shape and values.dtype == here.dtype
    assert (np.isnan(values) == np.isnan(here)).all()
    scale = np.nanmax(np.abs(here))
    assert np.nanmax(np.abs(values - here)) <= tolerance * scale


def spectra(x):
    return np.ascontiguousarray(x.reshape(len(x), -1).T[[11, 333, 1234, 2500]])


CALLS = {
    "spp": lambda x, s: hsi.spp(x, ws=5),
    "spp alpha": lambda x, s: hsi.spp(x, ws=3, alpha=True).alpha,
    "unmix": lambda x, s: hsi.unmix(x, s),
    "unmix rmse": lambda x, s: hsi.unmix(x, s, rmse=True).rmse,
    "sam": lambda x, s: hsi.detect(x, target=s, method="sam"),
    "ace": lambda x, s: hsi.detect(x, target=s, method="ace"),
    "rx": lambda x, s: hsi.detect(x),
    "eadp": lambda x, s: hsi.eadp(x, nc=3),
}


@needs_gpu
@pytest.mark.parametrize("name", CALLS)
def test_results_are_the_cpus_and_on_the_device(name, torch):
    x = scene()
    there = torch.from_numpy(x).cuda()
    before = there.clone()
    made = CALLS[name](there, spectra(x))
    assert made.is_cuda and made.device == there.device and torch.equal(before, there)
    close(made, CALLS[name](x, spectra(x)), 2e-3 if name == "eadp" else 1e-4)


@needs_gpu
def test_components(torch):
    x = scene()
    there, model_there = hsi.pca(torch.from_numpy(x).cuda(), nc=5, model=True)
    here, model = hsi.pca(x, nc=5, model=True)
    assert there.is_cuda
    close(there.abs(), np.abs(here), 1e-3)
    # Extremes of bands are computed on a grid, which is equal on a device.
    assert model_there.document["bands"] == model.document["bands"] or [
        b.get("minimum") for b in model_there.document["bands"]] == [b.get("minimum") for b in model.document["bands"]]
    close(hsi.pca(torch.from_numpy(x).cuda(), apply=model), here, 1e-4)


@needs_gpu
def test_classification_and_points(torch):
    x = scene()
    there = torch.from_numpy(x).cuda()
    labels = np.zeros(x.shape[1:], np.uint8)
    labels[5:20, 5:20], labels[40:60, 50:80] = 1, 2
    model = hsi.svm_train(x, labels, C=8, gamma=0.5)
    with pytest.raises(hsi.UsageError, match="svm_train computes on the CPU, but src is in the memory of CUDA device 0"):
        hsi.svm_train(there, labels, C=8, gamma=0.5)
    classes = hsi.svm_classify(there, model)
    assert classes.is_cuda and (classes.cpu().numpy() == hsi.svm_classify(x, model)).mean() > 0.999
    found, expected = hsi.atdca(there, t=4), hsi.atdca(x, t=4)
    assert (found["line"] == expected["line"]).all() and (found["sample"] == expected["sample"]).all()
    field = hsi.sahic(there, labels)
    assert field.is_cuda and field.shape == x.shape[1:]


@needs_gpu
def test_layouts_and_types(torch):
    """Bands last, slices, other types, nodata: arrays that need conversion go through host memory, with right
    results."""
    x = scene()
    there = torch.from_numpy(x).cuda()
    expected = hsi.spp(x, ws=3)
    last = hsi.spp(there.permute(1, 2, 0).contiguous(), ws=3, band_axis=-1)
    assert last.shape == (70, 96, 24)
    close(last.permute(2, 0, 1), expected)
    turned = hsi.unmix(there, torch.from_numpy(spectra(x)).cuda())
    close(turned, hsi.unmix(x, spectra(x)))
    close(hsi.spp(there.permute(1, 2, 0), ws=3, band_axis=-1).permute(2, 0, 1), expected)
    cut = there[::2, 3:50, 7:80]
    close(hsi.spp(cut, ws=3), hsi.spp(x[::2, 3:50, 7:80], ws=3))
    whole = (x * 1000).astype(np.int16)
    made = hsi.spp(torch.from_numpy(whole).cuda(), ws=3)
    assert made.is_cuda and np.abs(made.cpu().numpy() - hsi.spp(whole, ws=3)).max() <= 1
    holes = x.copy()
    holes[:, 10:14, 20:30] = -1
    close(hsi.spp(torch.from_numpy(holes).cuda(), ws=3, nodata=-1), hsi.spp(holes, ws=3, nodata=-1))
    out = torch.full((48, 70, 96), 7.0, device="cuda")
    hsi.spp(there, ws=3, out=out[::2])
    close(out[::2], expected)
    assert (out[1::2] == 7).all()
    close(hsi.spp(there, ws=3, tile=[32, 16]), expected)
    half = hsi.spp(there.half(), ws=3)
    assert half.is_cuda and half.dtype == torch.float32


@needs_gpu
def test_the_callers_stream(torch):
    """Work in the caller's stream comes first, and results are allocated in this stream."""
    x = scene(256, 256, 64)
    there = torch.from_numpy(x).cuda()
    expected = hsi.spp(x, ws=3)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = torch.zeros_like(there)
        torch.cuda._sleep(200_000_000)
        late.copy_(there)
        made = hsi.spp(late, ws=3) * 2
    stream.synchronize()
    close(made, expected * 2)


@needs_gpu
def test_what_is_refused(torch):
    x = torch.from_numpy(scene()).cuda()
    labels = torch.zeros(x.shape[1:], dtype=torch.uint8, device="cuda")
    with pytest.raises(hsi.UsageError, match="device: cpu was requested, but src is in the memory of CUDA device 0"):
        hsi.spp(x, device="cpu")
    with pytest.raises(hsi.UsageError, match="computes on the CPU"):
        hsi.accuracy(labels, labels)
    with pytest.raises(hsi.UsageError, match="CUDA device 1, but there are only 1 device|CUDA device 1, but its data"):
        hsi.spp(Foreign(np.zeros(x.shape, np.float32), 1, data=(x.data_ptr(), False)))
    with pytest.raises(hsi.UsageError, match="not in the memory of a device|device -"):
        hsi.spp(Foreign(scene()))
    with pytest.raises(hsi.UsageError, match="dst is in the memory of a CUDA device, but all inputs are"):
        hsi.spp(x.cpu().numpy(), out=x)
    with pytest.raises(hsi.UsageError, match="shares memory"):
        hsi.spp(x, out=x)
    other = Foreign(np.zeros(x.shape, np.float32), 1, data=(torch.empty_like(x).data_ptr(), False))
    with pytest.raises(hsi.UsageError, match="dst is on CUDA device 1, but src is on CUDA device 0"):
        hsi.spp(x, out=other)


@needs_gpu
def test_cupy_and_jax(torch):
    x = scene()
    expected = hsi.spp(x, ws=3)
    cupy = pytest.importorskip("cupy")
    made = hsi.spp(cupy.asarray(x), ws=3)
    assert isinstance(made, cupy.ndarray)
    close(torch.from_dlpack(made), expected)
    turned = hsi.spp(cupy.asarray(np.ascontiguousarray(x.transpose(1, 2, 0))), ws=3, band_axis=-1)
    close(torch.from_dlpack(turned).permute(2, 0, 1), expected)
    with cupy.cuda.Stream(non_blocking=True):
        close(torch.from_dlpack(hsi.spp(cupy.asarray(x) * 1, ws=3)), expected)
    jax = pytest.importorskip("jax")
    with pytest.raises(hsi.UsageError, match="results cannot be made as arrays of jax"):
        hsi.spp(jax.device_put(x), ws=3)


def seen(torch, work, tmp_path):
    """Returns the profiler's events of a call, including kernels."""
    kinds = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        work()
        torch.cuda.synchronize()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(e.get("cat") == "kernel" for e in events), "the profiler has seen nothing"
    return events


def calls(x, there, torch):
    """Returns a call of every algorithm that reads a scene where it is."""
    s = spectra(x)
    labels = np.zeros(x.shape[1:], np.uint8)
    labels[5:20, 5:20], labels[40:60, 50:80] = 1, 2
    model = hsi.svm_train(x, labels, C=8, gamma=0.5)
    few = hsi.pca(there, nc=4)
    return {"spp": lambda: hsi.spp(there, ws=5), "pca": lambda: hsi.pca(there, nc=3), "mnf": lambda: hsi.mnf(there, nc=3),
            "sam": lambda: hsi.detect(there, target=s, method="sam"), "ace": lambda: hsi.detect(there, target=s, method="ace"),
            "mf": lambda: hsi.detect(there, target=s, method="mf", map=True, threshold="0.5"), "rx": lambda: hsi.detect(there),
            "local rx": lambda: hsi.detect(there[:20, :60, :80], window=(3, 9)),
            "unmix": lambda: hsi.unmix(there, s), "nnls": lambda: hsi.unmix(there, s, method="nnls", rmse=True),
            "eadp": lambda: hsi.eadp(few, no_pca=True), "svm": lambda: hsi.svm_classify(there, model)}


@needs_gpu
def test_scenes_do_not_go_over_the_bus(torch, tmp_path):
    x = scene(400, 300, 100)
    there = torch.from_numpy(x).cuda()
    for name, work in calls(x, there, torch).items():
        work()
        copies = [e for e in seen(torch, work, tmp_path) if e.get("cat") == "gpu_memcpy"]
        share = sum(e["args"].get("bytes", 0) for e in copies if "DtoD" not in e["name"]) / x.nbytes
        # svm checks on some lines whether values are in the range of the training.
        assert share < (0.25 if name == "svm" else 0.05), (name, share)


@needs_gpu
def test_repeated_calls_allocate_nothing(torch, tmp_path):
    """Neither device memory nor pinned host memory grows over many small calls."""
    x = scene(300, 200, 50)
    there = torch.from_numpy(x).cuda()
    all_calls = calls(x, there, torch)
    for name, work in all_calls.items():
        work(), work()
        made = [e["name"] for e in seen(torch, work, tmp_path) if e.get("cat") in ("cuda_runtime", "cuda_driver")]
        taken = [n for n in made if any(k in n for k in ("Malloc", "MemAlloc", "HostAlloc", "HostRegister", "cudaFree", "MemFree"))]
        assert not taken, (name, taken)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(10):
        for work in all_calls.values():
            work()
    assert torch.cuda.mem_get_info()[0] == free


@needs_gpu
@pytest.mark.parametrize("size", [(130, 75, 37), (2500, 19, 20)], ids=["holes", "wide"])
def test_no_bit_depends_on_where_a_scene_lies(size, torch):
    """From host memory, tiles go through several lanes; on the device, the scene is one piece. In a line of 2500
    pixels, some pairs of neighbours cross the borders of statistics blocks."""
    x = scene(*size)
    lines, samples = x.shape[1:]
    x[:, lines // 2, :samples // 3] = 0
    x[3, 1, 2], x[:, lines // 3, samples // 2], x[:, 0, 5:9] = np.nan, np.inf, np.nan
    there = torch.from_numpy(x).cuda()
    s = spectra(cube(100, 40, len(x)))
    for call in (lambda a, **k: hsi.pca(a, nc=3, model=True, **k), lambda a, **k: hsi.mnf(a, nc=3, model=True, **k),
                 lambda a, **k: hsi.detect(a, target=s, method="ace", map=True, threshold="0.2", **k), lambda a, **k: hsi.detect(a, **k),
                 lambda a, **k: hsi.unmix(a, s, rmse=True, **k), lambda a, **k: hsi.eadp(a, nc=2, **k)):
        on_device, from_host = call(there, full=True), call(x, full=True, device="cuda")
        for one, other in zip(on_device, from_host):
            if isinstance(other, np.ndarray):
                assert one.cpu().numpy().tobytes() == other.tobytes()
            else:
                assert one.document.get("minimum") == other.document.get("minimum")
                assert one.document["eigenvalues"] == other.document["eigenvalues"]
        for fact in ("detection", "residual", "threshold", "valid_pixels", "invalid_pixels"):
            assert on_device.report.get(fact) == from_host.report.get(fact)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-rs", "-p", "no:cacheprovider"]))


@needs_gpu
def test_passes_over_an_array_of_the_host_send_it_once(torch, tmp_path):
    """Data that are read again stay on the device if results are small in comparison, for every type of array."""
    x = scene(400, 300, 100)
    s = spectra(x)
    for method in ("ace", "mf", "rx"):
        target = {} if method == "rx" else {"target": s}

        def work():
            return hsi.detect(x, method=method, device="cuda", **target)
        expected = work()
        events = [e for e in seen(torch, work, tmp_path) if e.get("cat") == "gpu_memcpy"]
        sent = sum(e["args"].get("bytes", 0) for e in events if "HtoD" in e["name"])
        assert x.nbytes <= sent < 1.1 * x.nbytes, (method, sent / x.nbytes)
        there = hsi.detect(torch.from_numpy(x).cuda(), method=method, **target)
        assert (there.cpu().numpy() == expected).all(), method
        last = hsi.detect(np.ascontiguousarray(x.transpose(1, 2, 0)), method=method, device="cuda", band_axis=-1, **target)
        assert (last.transpose(2, 0, 1) == expected).all(), method
    free = torch.cuda.mem_get_info()[0]
    for _ in range(10):
        hsi.detect(x, device="cuda")
    assert torch.cuda.mem_get_info()[0] == free


@needs_gpu
def test_two_devices(torch):
    """Uses one call per device at the same time, and one call on both. Results are on the scene's device, with the bits
    of one device."""
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one device")
    x = scene(200, 150, 40)
    s = spectra(x)
    first, second = (torch.from_numpy(x).to(f"cuda:{k}") for k in (0, 1))
    with pytest.raises(hsi.UsageError, match="dst is on CUDA device 1, but src is on CUDA device 0"):
        hsi.spp(first, out=torch.empty_like(second))
    with pytest.raises(hsi.UsageError, match="device: cuda:0 was requested, but src is in the memory of CUDA device 1"):
        hsi.spp(second, device="cuda:0")
    works = {"spp": lambda a: hsi.spp(a, ws=5), "pca": lambda a: hsi.pca(a, nc=3), "ace": lambda a: hsi.detect(a, target=s, method="ace"),
             "unmix": lambda a: hsi.unmix(a, s)}
    expected = {name: work(first).cpu().numpy() for name, work in works.items()}
    wrong = []

    def many(there):
        for _ in range(5):
            for name, work in works.items():
                made = work(there)
                if made.device != there.device or not (made.cpu().numpy() == expected[name]).all():
                    wrong.append((name, str(there.device)))
    threads = [threading.Thread(target=many, args=(there,)) for there in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    for name, device in (("spp", "cuda:1"), ("spp", "cuda:0,1"), ("unmix", "cuda:0,1"), ("ace", "cuda:1")):
        call = {"spp": lambda **k: hsi.spp(x, ws=5, **k), "unmix": lambda **k: hsi.unmix(x, s, **k),
                "ace": lambda **k: hsi.detect(x, target=s, method="ace", **k)}[name]
        assert (call(device=device) == call(device="cuda:0")).all(), (name, device)
