# SPDX-License-Identifier: MIT
"""Runs the Python code of pages as a reader would: the tutorial from top to bottom, as the notebook that is made from
it."""
import contextlib
import io
import json
import re
import subprocess

import pytest

from conftest import ROOT

PAGE = ROOT / "docs" / "tutorials" / "arrays.md"


def block(mark):
    """Returns the block of docs/python.md with this mark."""
    return re.search(f"<!-- test: {mark} -->\\s*```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)[1]


def test_tutorial(tmp_path):
    subprocess.run([ROOT / "scripts" / "notebook", PAGE, tmp_path / "arrays.ipynb"], check=True)
    notebook = json.loads((tmp_path / "arrays.ipynb").read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert len(cells) == PAGE.read_text().count("```python\n") >= 6
    names = {}
    for code in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102
        assert printed.getvalue().splitlines() == re.findall(r"# prints: (.*)", code)


def test_examples_of_the_manual():
    """Runs the first block of docs/python.md on arrays of the sizes that it assumes."""
    import numpy as np
    from conftest import cube
    import gdal_hsi as hsi
    text = (ROOT / "docs" / "python.md").read_text()
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    x = cube(30, 24, 12)
    labels = np.zeros((24, 30), np.uint8)
    labels[2:8, ::2], labels[12:20, ::2] = 1, 2
    spectra = x.reshape(12, -1).T[[10, 200, 400]]
    names = {"x": x, "labels": labels, "spectra": spectra, "names": list("abc"), "nm": list(range(400, 1000, 50)),
             "wavelengths": list(range(400, 1000, 50))}
    for line in code.splitlines():
        if "band_axis=-1" in line:
            line = line.replace("hsi.spp(x", "hsi.spp(x.transpose(1, 2, 0)")
        exec(line, names)  # noqa: S102
    assert names["y"].shape == (24, 30, 12) and names["classes"].shape == (24, 30)
    assert isinstance(names["model"], hsi.Model) and names["scores"].shape == (3, 24, 30)


def test_example_of_how_do_i(tmp_path, monkeypatch):
    import gdal_hsi as hsi
    monkeypatch.chdir(tmp_path)
    hsi.run("synth", "scene.dat", size=(30, 20, 200))
    code, = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "how_do_i.md").read_text(), re.DOTALL)
    names = {}
    exec(code, names)  # noqa: S102
    assert names["components"].shape == (8, 20, 30) and (tmp_path / "ndvi.tif").exists()


def test_the_figure_of_the_manual(tmp_path, monkeypatch):
    """From a file to a figure of three panels, none of them empty."""
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    pytest.importorskip("rasterio", reason="rasterio is not installed")
    import gdal_hsi as hsi
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    hsi.run("synth", "scene.dat", size=(60, 50, 40), endmembers=4, seed=2)
    names = {}
    exec(block("a figure"), names)  # noqa: S102
    assert (tmp_path / "figure.png").stat().st_size > 5000 and names["abundances"].shape == (4, 50, 60)
    assert len(names["axes"][1].lines) == 4 and not names["plt"].close(names["figure"])


def test_the_search_of_the_manual():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    import numpy as np
    from conftest import cube
    import gdal_hsi as hsi
    pixels = cube(30, 25, 9).reshape(9, -1).T
    names = {"hsi": hsi, "pixels": pixels, "classes": pixels[:, 2] > np.median(pixels[:, 2]), "field_of_pixel": np.arange(len(pixels)) // 50}
    exec(block("a search by groups"), names)  # noqa: S102
    assert names["search"].best_score_ > 0.8


@pytest.mark.parametrize("page", ["python.md", "libhsi.md", "how_do_i.md"])
def test_pages_name_functions_that_there_are(page):
    import gdal_hsi as hsi
    for name in set(re.findall(r"\bhsi\.(\w+)\(", (ROOT / "docs" / page).read_text())):
        assert hasattr(hsi, name) or name in hsi.algorithms()
