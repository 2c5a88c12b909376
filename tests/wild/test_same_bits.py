# SPDX-License-Identifier: MIT
"""The table of docs/same_bits.md: every tool's outputs for one scene have the same SHA-256 on all processors with fused
multiplication and addition (x86-64 with AVX2 or AVX-512, 64-bit ARM)."""

import os
import re

import pytest

from conftest import BIN, run
import same_bits

pytestmark = pytest.mark.quick


def fused():
    message = run("gdal_hsi_vd", "--config", "HSI_SIMD", "?", "scene").err
    return re.search(r"Possible: ([a-z0-9]+)", message).group(1) in ("avx512", "avx2", "neon")


def test_the_table_has_every_tool():
    tools = {path.name for path in (same_bits.PAGE.parents[1] / "gdal_tools").glob("gdal_hsi_*.cpp")}
    rows = same_bits.recorded()
    assert {f"gdal_hsi_{tool}.cpp" for tool in {row[0] for row in rows} | same_bits.APART} == tools
    assert all(re.fullmatch("[0-9a-f]{64}", value) for _, _, value in rows)
    assert len({(tool, file) for tool, file, _ in rows if file != "(printed)"}) == len([r for r in rows if r[1] != "(printed)"])


def test_the_same_bits(tmp_path):
    if not fused():
        pytest.skip("this processor has no fused multiplication and addition")
    environment = {key: value for key, value in os.environ.items() if key not in ("HSI_SIMD", "OPENBLAS_CORETYPE")}
    rows = [(tool, file, value) for tool, _, file, value in same_bits.hashes(BIN, tmp_path, environment)]
    expected = same_bits.recorded()
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    assert [row[:2] for row, other in zip(rows, expected) if row != other] == []
