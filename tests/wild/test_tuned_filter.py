# SPDX-License-Identifier: MIT
"""gdal_hsi_detect -method mtmf, compared with numpy's eigenvectors in double precision; and refused input."""

import json

import numpy as np
import pytest
from osgeo import gdal

from conftest import assert_untouched, cube, first_error, read, run, succeed, write_scene

BANDS = 24
NM = [450 + 20 * b for b in range(BANDS)]
HOLES = [(3, 4), (9, 20)]


def components(scene, mask=None):
    """Returns (mean, falling eigenvalues, rows): C v = l N v with v'N v = 1, N from neighbours along the lines."""
    valid = np.isfinite(scene).all(axis=0) & (scene != 0).any(axis=0)
    if mask is not None:
        valid &= mask
    x = scene[:, valid].astype(float)
    both = valid[:, 1:] & valid[:, :-1]
    d = (scene[:, :, 1:].astype(float) - scene[:, :, :-1])[:, both]
    noise, signal = d @ d.T / (2 * d.shape[1]), np.cov(x)
    w, u = np.linalg.eigh(noise)
    white = u / np.sqrt(w)
    l, v = np.linalg.eigh(white.T @ signal @ white)
    return x.mean(axis=1), l[::-1], (white @ v).T[::-1]


def reference(scene, spectra, nc=None, of=None):
    """Returns [target][MF, infeasibility][line][sample], and the number of components."""
    mean, l, rows = of or components(scene)
    nc = nc or max(2, int((l >= 2).sum()))
    l, rows = l[:nc], rows[:nc]
    y = np.einsum("kb,byx->kyx", rows, scene - mean[:, None, None])
    valid = np.isfinite(scene).all(axis=0) & (scene != 0).any(axis=0)
    result = []
    for t in spectra:
        t = rows @ (t - mean)
        mf = np.einsum("k,kyx->yx", t / l, y) / (t @ (t / l))
        a = np.clip(mf, 0, 1)
        v = (1 - a) ** 2 * np.maximum(l - 1, 0)[:, None, None] + 1
        apart = np.sqrt(((y - a * t[:, None, None]) ** 2 / v).mean(axis=0))
        result.append([np.where(valid, mf, np.nan), np.where(valid, apart, np.nan)])
    return np.array(result), nc


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(5)
    scene = cube(47, 33, BANDS, seed=2, scale=1, noise=0.01)
    t = scene[:, 20, 30] * 0 + 0.4 + 0.3 * np.sin(np.arange(BANDS))
    for y, x, share in ((5, 6, 0.4), (12, 33, 0.8), (30, 2, 0.1)):
        scene[:, y, x] = (1 - share) * scene[:, y, x] + share * t
    scene = (scene + rng.normal(0, 0.005, scene.shape)).astype(np.float32)
    scene[4, HOLES[0][0], HOLES[0][1]] = np.nan
    scene[:, HOLES[1][0], HOLES[1][1]] = 0
    write_scene(tmp_path / "scene.img", scene, wavelengths=NM)
    spectra = [t, t[::-1] + 0.2]
    with open(tmp_path / "targets.csv", "w") as f:
        f.write("wavelength_nm,odd,other\n" + "".join(f"{w},{a:.12g},{b:.12g}\n" for w, a, b in zip(NM, *spectra)))
    return tmp_path, scene, spectra


def mtmf(*args):
    return run("gdal_hsi_detect", "-method", "mtmf", *args)


def near(got, want):
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("nc", [None, 3, BANDS])
def test_scores_against_the_reference(files, nc):
    folder, scene, spectra = files
    succeed(mtmf("-target", folder / "targets.csv", *([] if nc is None else ["-nc", nc]), "-report", folder / "r.json",
                 folder / "scene.img", folder / "s.tif"))
    want, used = reference(scene, spectra, nc)
    near(read(folder / "s.tif"), want.reshape(4, *scene.shape[1:]))
    report = json.loads((folder / "r.json").read_text())["detection"]
    assert report["components"] == used == len(report["snr"]) and (nc is not None or 2 < used < BANDS)
    dataset = gdal.Open(str(folder / "s.tif"))
    names = [dataset.GetRasterBand(k + 1).GetDescription() for k in range(4)]
    assert names == ["odd MF", "odd infeasibility", "other MF", "other infeasibility"]
    assert dataset.GetMetadataItem("HSI_DETECT_METHOD") == "mtmf"
    assert report["best_scores"] == pytest.approx(np.nanmax(want[:, 0], axis=(1, 2)).tolist(), abs=1e-3)


def test_with_all_components_it_is_mf(files):
    folder, _, _ = files
    succeed(mtmf("-target", folder / "targets.csv", "-nc", BANDS, folder / "scene.img", folder / "s.tif"))
    succeed(run("gdal_hsi_detect", "-method", "mf", "-target", folder / "targets.csv", folder / "scene.img", folder / "mf.tif"))
    near(read(folder / "s.tif")[::2], read(folder / "mf.tif"))


def test_what_infeasibility_tells(tmp_path):
    """Infeasibility is 0 at the target, about 1 for the background and for mixtures, and greater for false targets with
    high scores."""
    rng, b = np.random.default_rng(4), np.arange(BANDS)
    y, x = np.mgrid[:80, :90] / 40
    shares = np.array([1 + np.sin(3 * x + y), 1 + np.cos(2 * y), 1 + np.sin(x * y)])
    ends = np.array([0.3 + 0.01 * b, 0.5 - 0.01 * b, 0.4 + 0.1 * np.sin(b / 4)])
    scene = np.einsum("kyx,kb->byx", shares / shares.sum(axis=0), ends) + rng.normal(0, 0.004, (BANDS, 80, 90))
    t = 0.4 + 0.2 * np.sin(b / 2)
    # Targets in the scene's statistics weaken their own scores
    write_scene(tmp_path / "bare.img", scene.astype(np.float32), wavelengths=NM)
    succeed(run("gdal_hsi_mnf", "-model", tmp_path / "m.json", tmp_path / "bare.img", tmp_path / "mnf.tif"))
    scene[:, 10, 20] = t
    scene[:, 40, 50] += 0.3 * (t - scene[:, 40, 50])
    scene[:, 60, 30] += 0.3 * (t - scene[:, 60, 30]) + 0.1 * np.cos(1.7 * b)
    write_scene(tmp_path / "told.img", scene.astype(np.float32), wavelengths=NM)
    (tmp_path / "t.csv").write_text("wavelength_nm,odd\n" + "".join(f"{w},{v:.9g}\n" for w, v in zip(NM, t)))
    succeed(mtmf("-target", tmp_path / "t.csv", "-mnf-model", tmp_path / "m.json", "-nc", BANDS, tmp_path / "told.img",
                 tmp_path / "s.tif"))
    mf, apart = read(tmp_path / "s.tif")
    assert mf[10, 20] == pytest.approx(1, abs=0.01) and apart[10, 20] < 0.1
    assert mf[40, 50] == pytest.approx(0.3, abs=0.05) and apart[40, 50] < 2
    assert mf[60, 30] > 0.2 and apart[60, 30] > 5 and 0.8 < np.median(apart) < 1.2


def test_map(files):
    folder, scene, spectra = files
    succeed(mtmf("-target", folder / "targets.csv", "-map", folder / "m.tif", "-threshold", "0.05", "-max-infeasibility", "1.1",
                 folder / "scene.img", folder / "s.tif"))
    want, _ = reference(scene, spectra)
    judged = np.where(want[:, 1] <= 1.1, want[:, 0], -np.inf)
    best = np.where(np.isnan(want[0, 0]), 0, np.where(judged.max(axis=0) >= 0.05, judged.argmax(axis=0) + 1, 0))
    got = gdal.Open(str(folder / "m.tif")).ReadAsArray()
    clear = (abs(want[:, 1] - 1.1) > 1e-3).all(axis=0) & (abs(want[:, 0] - 0.05) > 1e-3).all(axis=0)
    assert clear.mean() > 0.9 and (got == best)[clear | np.isnan(want[0, 0])].all() and set(got.ravel()) == {0, 1, 2}
    assert ((want[:, 0].max(axis=0) >= 0.05) & (best == 0)).any()  # the infeasibility was decisive
    assert gdal.Open(str(folder / "s.tif")).GetMetadataItem("HSI_DETECT_MAX_INFEASIBILITY") == "1.1"


def test_a_model_gives_the_same(files):
    folder, scene, spectra = files
    succeed(run("gdal_hsi_mnf", "-model", folder / "m.json", folder / "scene.img", folder / "mnf.tif"))
    succeed(mtmf("-target", folder / "targets.csv", folder / "scene.img", folder / "a.tif"))
    succeed(mtmf("-target", folder / "targets.csv", "-mnf-model", folder / "m.json", folder / "scene.img", folder / "b.tif"))
    near(read(folder / "b.tif"), read(folder / "a.tif"))
    # From another scene, whose bands have another order, and one of which the model lacks.
    order = np.random.default_rng(1).permutation(BANDS)
    other = scene[order][:, ::-1]
    other = np.concatenate([other, np.full_like(other[:1], np.nan)])
    write_scene(folder / "other.img", other, wavelengths=[NM[b] for b in order] + [1500])
    succeed(mtmf("-target", folder / "targets.csv", "-mnf-model", folder / "m.json", folder / "other.img", folder / "c.tif"))
    near(read(folder / "c.tif")[:, ::-1], read(folder / "a.tif"))
    # From a scene whose wavelengths are slightly off, in the model's order.
    write_scene(folder / "off.img", scene, wavelengths=[NM[0], *(w + 8 for w in NM[1:-1]), NM[-1]])
    words = ("-target", folder / "targets.csv", "-mnf-model", folder / "m.json", folder / "off.img", folder / "d.tif")
    result = mtmf(*words)
    assert result.code == 1 and "was made for other bands" in first_error(result) and "-any-wavelengths" in result.err
    for name in "scene", "off":
        succeed(mtmf("-target-pixel", 12, 33, "-mnf-model", folder / "m.json", "-any-wavelengths", folder / f"{name}.img",
                     folder / f"pixel_{name}.tif"))
    assert (read(folder / "pixel_off.tif").tobytes()) == read(folder / "pixel_scene.tif").tobytes()


def test_a_mask_leaves_pixels_out_of_the_statistics(files):
    folder, scene, spectra = files
    keep = np.ones(scene.shape[1:], bool)
    keep[12:15, 28:40] = False
    write_scene(folder / "mask.tif", keep[None].astype("u1"), driver="GTiff", dtype="u1")
    succeed(mtmf("-target", folder / "targets.csv", "-mask", folder / "mask.tif", folder / "scene.img", folder / "s.tif"))
    want, _ = reference(scene, spectra, of=components(scene, keep))
    near(read(folder / "s.tif"), want.reshape(4, *scene.shape[1:]))


def test_pixels_as_targets(files):
    folder, scene, _ = files
    succeed(mtmf("-target-pixel", 12, 33, folder / "scene.img", folder / "s.tif"))
    want, _ = reference(scene, [scene[:, 12, 33].astype(float)])
    near(read(folder / "s.tif"), want[0])
    assert read(folder / "s.tif")[0, 12, 33] == pytest.approx(1, abs=1e-4)


def test_tiles_and_threads_change_nothing(files):
    folder, _, _ = files
    same = []
    for i, options in enumerate([("-threads", "1"), ("-threads", "3", "-tile", "17", "5"), ("-tile", "64", "11")]):
        paths = [folder / f"{name}{i}.img" for name in "sm"]
        succeed(mtmf("-target", folder / "targets.csv", "-map", paths[1], "-threshold", "0.05", "-max-infeasibility", "1.5",
                     *options, folder / "scene.img", paths[0], "-of", "ENVI"))
        same.append([p.read_bytes() for p in paths])
    assert same[0] == same[1] == same[2]


def test_a_target_that_is_the_mean(files):
    folder, scene, _ = files
    mean = components(scene)[0]
    with open(folder / "mean.csv", "w") as f:
        f.write("wavelength_nm,mean\n" + "".join(f"{w},{v:.17g}\n" for w, v in zip(NM, mean)))
    with assert_untouched(folder):
        result = mtmf("-target", folder / "mean.csv", folder / "scene.img", folder / "s.tif")
    assert result.code == 1 and "target 'mean' equals the mean of the scene" in first_error(result)


@pytest.mark.parametrize("args,code,text", [
    ((), 2, "requires a target"),
    (("-target", "targets.csv", "-background", "scene.img"), 2, "-background cannot be used with -method mtmf"),
    (("-target", "targets.csv", "-background-by", "columns"), 2, "-background-by"),
    (("-target", "targets.csv", "-shrinkage", "0.1"), 2, "-shrinkage cannot be used with -method mtmf"),
    (("-target", "targets.csv", "-exclude-share", "0.1"), 2, "-exclude-share"),
    (("-target", "targets.csv", "-map", "m.tif", "-false-alarms", "0.1"), 2, "-false-alarms cannot be used with -method mtmf"),
    (("-target", "targets.csv", "-map", "m.tif", "-threshold", "99%"), 2, "-threshold 99% cannot be used with -method mtmf"),
    (("-target", "targets.csv", "-max-infeasibility", "2"), 2, "-max-infeasibility requires -map"),
    (("-target", "targets.csv", "-map", "m.tif", "-max-infeasibility", "0"), 2, "-max-infeasibility"),
    (("-target", "targets.csv", "-nc", "auto"), 2, "-nc: 'auto' is not a whole number"),
    (("-target", "targets.csv", "-nc", "25"), 2, "-nc 25"),
    (("-target", "targets.csv", "-target-is-absorption"), 2, "requires -method mf or ace"),
    (("-target", "targets.csv", "-window", "3", "9"), 2, "-window"),
    (("-target", "targets.csv", "-range", "500-600nm"), 2, "-range requires -method sff"),
    (("-target", "targets.csv", "-of", "VRT"), 2, "-method mtmf cannot be used with a virtual scene as dst"),
    (("-target", "targets.csv", "-mnf-model", "targets.csv"), 1, "targets.csv"),
    (("-target", "targets.csv", "-any-wavelengths"), 2, "-any-wavelengths requires -mnf-model"),
    (("-target-pixel", "3", "4"), 1, "the pixel is invalid"),
])
def test_bad_input(files, args, code, text):
    folder, _, _ = files
    known = {"targets.csv", "scene.img", "m.tif"}
    args = [folder / a if a in known else a for a in args]
    with assert_untouched(folder):
        result = mtmf(*args, folder / "scene.img", folder / "s.tif")
    assert result.code == code and text in first_error(result), result.err


@pytest.mark.parametrize("option", [("-mnf-model", "m.json"), ("-max-infeasibility", "2"), ("-any-wavelengths",)])
def test_options_of_mtmf_alone(files, option):
    folder, _, _ = files
    (folder / "m.json").write_text("{}")
    args = [folder / a if a.endswith("json") else a for a in option]
    result = run("gdal_hsi_detect", "-target", folder / "targets.csv", *args, folder / "scene.img", folder / "s.tif")
    assert result.code == 2 and f"{option[0]} requires -method mtmf" in first_error(result)
