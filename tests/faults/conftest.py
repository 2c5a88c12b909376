# SPDX-License-Identifier: MIT
import pytest

import workloads


def pytest_configure(config):
    config.addinivalue_line("markers", "sample: what every run of the tests takes; the rest is left to --slow")


@pytest.fixture(scope="session")
def material(tmp_path_factory):
    """Makes the files that the jobs read. They are never written to, since tests work in copies."""
    return workloads.make_material(tmp_path_factory.mktemp("material"))
