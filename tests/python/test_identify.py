# SPDX-License-Identifier: MIT
"""Identification of materials by rules in arrays: a map with names, scores, and mistakes in Python terms."""
import json

import numpy as np
import pytest

import gdal_hsi as hsi

NM = np.linspace(2000, 2400, 41)
SHAPES = {name: 0.5 * (1 - 0.3 * np.exp(-0.5 * ((NM - centre) / 25) ** 2)) for name, centre in (("clay", 2206), ("lime", 2330))}
RULES = {"format": "gdal_hsi_rules", "version": 1, "rules": [
    {"name": "clay", "features": [{"windows": [2080, 2120, 2280, 2310]}], "limits": {"fit": [0.9, None]}},
    {"name": "lime", "features": [{"windows": [2220, 2250, 2390, 2400]}], "limits": {"fit": [0.9, None]}}]}
CUBE = np.stack([np.stack([SHAPES["clay"], SHAPES["lime"], np.full(41, 0.5)], 1)] * 2, 1).astype(np.float32)
LIBRARY = hsi.Spectra(np.array(list(SHAPES.values())), list(SHAPES), NM)


def test_a_map_and_scores():
    found, scores = hsi.identify(CUBE, json.dumps(RULES), library=LIBRARY, wavelengths=NM, scores=True)
    assert np.array_equal(found, [[1, 2, 0]] * 2)
    assert np.allclose(scores[0], [[1, 1, 0]] * 2, atol=1e-6)


def test_several_groups_are_bands_of_one_array():
    rules = {**RULES, "rules": [{**RULES["rules"][0], "group": "a"}, {**RULES["rules"][1], "group": "b"}]}
    found, centres = hsi.identify(CUBE, json.dumps(rules), library=LIBRARY, wavelengths=NM, centre=True)
    assert np.array_equal(found, [[[1, 0, 0]] * 2, [[0, 2, 0]] * 2])
    assert np.allclose(centres, [[[2206, 0, 0]] * 2, [[0, 2330, 0]] * 2], atol=1)
    one = hsi.identify(CUBE, json.dumps(rules), library=LIBRARY, wavelengths=NM, group="b")
    assert np.array_equal(one, found[1])


def test_mistakes():
    with pytest.raises(hsi.Error, match="(?s).*missing or empty"):
        hsi.identify(CUBE, json.dumps({**RULES, "rules": []}), library=LIBRARY, wavelengths=NM)
