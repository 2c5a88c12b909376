# SPDX-License-Identifier: MIT
import pytest

import workloads


@pytest.fixture(scope="session")
def material(tmp_path_factory):
    """The files that the jobs read; never written to: tests work in copies."""
    return workloads.make_material(tmp_path_factory.mktemp("material"))
