# SPDX-License-Identifier: MIT
"""gdal_hsi_noise against a NumPy reference in double precision, its tables, bands that it proposes as bad, and what it refuses."""
import csv
import json

import numpy as np
import pytest

from conftest import first_error, read, run, succeed, write_scene

BANDS, LINES, SAMPLES = 20, 67, 83
NM = [500 + 10.0 * b + (200 if b >= 12 else 0) + (500 if b >= 18 else 0) for b in range(BANDS)]
SEGMENTS = [(0, 12), (12, 18), (18, 20)]


def noise(*args):
    return run("gdal_hsi_noise", *args)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(8)
    y, x = np.mgrid[:LINES, :SAMPLES]
    a, c = 1 + np.sin(x / 20) * np.cos(y / 30), 1 + np.cos(x / 25 + y / 17)
    b = np.arange(BANDS)[:, None, None]
    scene = 500 + 80 * a * (1 + np.sin(b / 6)) + 60 * c * (1 + np.cos(b / 9)) + (1 + 0.1 * b) * rng.normal(size=(BANDS, LINES, SAMPLES))
    scene += 2 * rng.normal(size=SAMPLES)
    scene[7] += rng.normal(size=(LINES, SAMPLES)) * 900  # noise alone
    scene[4] = 42
    scene[3, 20, 30], scene[:, 50, 60] = np.nan, 0
    write_scene(folder / "scene.img", scene.astype(np.float32), wavelengths=NM)
    mask = np.zeros((1, LINES, SAMPLES))
    mask[0, 5:40, 10:60] = 1
    write_scene(folder / "mask.tif", mask, driver="GTiff", dtype="u1")
    return folder


def values(folder, masked=False):
    scene = read(folder / "scene.img").astype(np.float64)
    scene[:, ~np.isfinite(scene).all(0) | (scene == 0).all(0)] = np.nan
    if masked:
        scene[:, read(folder / "mask.tif")[0] == 0] = np.nan
    return scene


def counted(scene):
    return scene[:, np.isfinite(scene).all(0)]


def regression(scene):
    v = counted(scene)
    used = [b for b in range(BANDS) if v[b].std() > 0]
    n, k = v.shape[1], len(used)
    p = np.linalg.inv(np.corrcoef(v[used]))
    residual = (n - 1) / ((n - k) * np.diag(p))
    m = (p / np.diag(p)[:, None]) ** 2
    q = np.maximum(np.linalg.solve(m, residual), 0.04 * residual)
    s, out = v[used].std(1, ddof=1), np.full((2, BANDS), np.nan)
    out[:, used] = s * np.sqrt(q), s * np.sqrt(residual)
    return out


def blocks_of(scene, size):
    for y in range(0, LINES - size + 1, size):
        for x in range(0, SAMPLES - size + 1, size):
            block = scene[:, y:y + size, x:x + size]
            if np.isfinite(block).all():
                yield block


def neighbours(b):
    for begin, end in SEGMENTS:
        if begin <= b < end and end - begin > 2:
            return (b + 1, b + 2) if b == begin else (b - 2, b - 1) if b == end - 1 else (b - 1, b + 1)
    return None


def by_blocks(scene, size, spatial):
    m, v, out = np.eye(BANDS), np.zeros(BANDS), np.full((2, BANDS), np.nan)
    for b in range(BANDS):
        by, found = neighbours(b), []
        if by is None:
            continue
        for block in blocks_of(scene, size):
            keep = slice(1, None) if spatial else slice(None)
            y, x = block[b].ravel()[keep], [block[j].ravel()[keep] for j in by]
            if spatial:
                above = np.vstack([np.roll(block[b][0], 1), block[b][:-1]]).ravel()
                x.append(above[1:])
            if min(y.std(), *(one.std() for one in x)) == 0:
                continue
            a = np.array([np.ones(y.size), *x]).T
            if np.linalg.det(np.corrcoef(x)) < 1e-12:
                continue
            c = np.linalg.lstsq(a, y, rcond=None)[0]
            found.append([((y - a @ c) ** 2).sum() / (y.size - a.shape[1]), *(c[1:] ** 2)])
        if found:
            medians = np.median(found, axis=0)
            v[b] = medians[0]
            m[b, b] += medians[3] if spatial else 0
            m[b, by[0]], m[b, by[1]] = medians[1:3]
            out[1, b] = np.sqrt(v[b])
    q = np.maximum(np.linalg.solve(m, v), 0.04 * v)
    out[0] = np.where(np.isnan(out[1]), np.nan, np.sqrt(q))
    return out


def lsd(scene, size):
    out = np.full((3, BANDS), np.nan)
    blocks = np.array(list(blocks_of(scene, size)))
    deviations, means = blocks.std((2, 3), ddof=1).T, blocks.mean((2, 3)).T
    for b in range(BANDS):
        d, m = deviations[b][deviations[b] > 0], means[b][deviations[b] > 0]
        if d.size:
            bins = np.minimum(((d - d.min()) / (d.max() - d.min()) * 150).astype(int), 149)
            full = np.bincount(bins, minlength=150).argmax()
            out[:, b] = d[bins == full].mean(), d[bins == full].mean(), m[bins == full].mean()
    return out


def difference(scene):
    d = np.diff(scene, axis=2).reshape(BANDS, -1)
    d = d[:, np.isfinite(d).all(0)]
    return np.sqrt((d ** 2).mean(1) / 2)


def stripes(scene):
    e = scene[:, :, 1:-1] - (scene[:, :, :-2] + scene[:, :, 2:]) / 2
    there = np.isfinite(e).all(0).sum(0) >= 20
    e = e[:, :, there]
    e = np.where(np.isfinite(e).all(0), e, np.nan)
    c, u = np.nanmean(e, 1), np.nanvar(e, 1, ddof=1) / np.isfinite(e).sum(1)
    mad = np.median(np.abs(c - np.median(c, 1)[:, None]), 1)
    return np.sqrt(np.maximum(0, (1.4826 * mad) ** 2 - np.median(u, 1)) / 1.5), (np.abs(c) > 5 * np.sqrt(u)).mean(1)


def table(out):
    found = json.loads(out.out)
    return {key: np.array([np.nan if v is None else v for v in value]) for key, value in found.items()}


@pytest.mark.parametrize("words", [("regression",), ("residual",), ("residual", "-block", "5"), ("ssdc",), ("ssdc", "-block", "11"), ("lsd",),
                                   ("difference",), ("area",)], ids=" ".join)
@pytest.mark.parametrize("masked", [False, True])
def test_values_are_those_of_the_reference(files, words, masked):
    if words[0] == "area" and not masked:
        return
    mask = ("-mask", files / "mask.tif") if masked else ()
    got = table(succeed(noise("-json", "-method", *words, *mask, files / "scene.img")))
    scene = values(files, masked)
    v, size = counted(scene), int(words[2]) if len(words) > 1 else 8
    signal = v.mean(1)
    deviation = v.std(1, ddof=1)
    if words[0] == "regression":
        expected, residual = regression(scene)
    elif words[0] == "lsd":
        expected, residual, signal = lsd(scene, size)
    elif words[0] in ("residual", "ssdc"):
        expected, residual = by_blocks(scene, size, words[0] == "ssdc")
    else:
        expected = residual = difference(scene) if words[0] == "difference" else deviation
    near = dict(rtol=2e-6, atol=1e-9, equal_nan=True)
    assert np.allclose(got["mean"], v.mean(1), **near) and np.allclose(got["deviation"], deviation, **near)
    assert np.allclose(got["noise"], expected, **near), got["noise"] / expected
    assert np.allclose(got["residual"], residual, **near)
    with np.errstate(all="ignore"):
        snr = signal / expected
    assert np.allclose(got["snr"], np.where(np.isfinite(snr), snr, np.nan), **near)
    stripe, share = stripes(scene)
    assert np.allclose(got["stripe"], stripe, rtol=1e-5, atol=1e-6) and np.allclose(got["stripe_columns"], share, atol=1e-12)
    assert list(got["band"]) == list(range(1, BANDS + 1)) and np.allclose(got["wavelength"], NM)
    assert got["reason"][4] == "constant" and got["reason"][7] == "snr" and not got["good"][7]
    if words[0] == "regression":
        assert got["good"].sum() == BANDS - 2


def test_tables_as_files(files, tmp_path):
    scene = read(files / "scene.img")
    write_scene(tmp_path / "s.img", scene, wavelengths=NM, bbl=[0 if b == 9 else 1 for b in range(BANDS)])
    out = succeed(noise("-csv", tmp_path / "n.csv", "-bad-bands", tmp_path / "bad.csv", tmp_path / "s.img"))
    assert "snr" in out.out.splitlines()[-BANDS]
    rows = list(csv.DictReader((tmp_path / "n.csv").open(newline="")))
    assert list(rows[0]) == ["band", "wavelength", "mean", "deviation", "noise", "residual", "snr", "stripe", "stripe_columns", "good", "reason"]
    assert len(rows) == BANDS - 1 and rows[4]["good"] == "0" and rows[4]["reason"] == "constant" and rows[4]["noise"] == ""
    bad = {int(row["band"]): row for row in csv.DictReader((tmp_path / "bad.csv").open(newline=""))}
    assert sorted(bad) == list(range(1, BANDS + 1))
    assert {b: row["reason"] for b, row in bad.items() if row["good"] == "0"} == {5: "constant", 8: "snr", 10: "bbl"}
    again = noise("-csv", tmp_path / "n.csv", tmp_path / "s.img")
    assert again.code == 1 and "exists already" in again.err
    succeed(noise("-csv", tmp_path / "n.csv", "-overwrite", tmp_path / "s.img"))


def test_limits_decide_what_is_good(files):
    got = table(succeed(noise("-json", "-min-snr", "0", "-max-noise-share", "1e-4", files / "scene.img")))
    share = got["noise"] ** 2 / got["deviation"] ** 2
    for b in range(BANDS):
        assert got["reason"][b] == ("constant" if b == 4 else "noise" if share[b] > 1e-4 else "")


@pytest.mark.parametrize("method", ["regression", "residual", "lsd"])
def test_tiles_threads_and_interleave_do_not_matter(files, tmp_path, method):
    expected = succeed(noise("-json", "-method", method, files / "scene.img")).out
    assert succeed(noise("-json", "-method", method, "-threads", "3", "-memory", "64M", files / "scene.img")).out == expected
    write_scene(tmp_path / "bip.img", read(files / "scene.img"), wavelengths=NM, options=["INTERLEAVE=BIP"])
    assert succeed(noise("-json", "-method", method, tmp_path / "bip.img")).out == expected


@pytest.mark.parametrize("options, code, first", [
    (("-block", "8"), 2, "-block requires -method residual, ssdc or lsd"), (("-method", "lsd", "-block", "3"), 2, "-block: '3'"),
    (("-method", "lsd", "-max-gap", "9"), 2, "-max-gap requires -method residual or ssdc"),
    (("-method", "area"), 2, "-method area requires -mask"), (("-min-snr", "-1"), 2, "-min-snr"),
    (("-srcwin", "0", "0", "4", "4"), 1, "-method regression needs more pixels than bands"),
    (("-srcwin", "0", "0", "1", "1", "-method", "residual"), 1, "1 valid pixel")])
def test_bad_input(files, tmp_path, options, code, first):
    out = noise(*options, "-csv", tmp_path / "x.csv", files / "scene.img")
    assert out.code == code and first in first_error(out), out.err
    assert not list(tmp_path.iterdir())

