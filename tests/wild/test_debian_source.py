# SPDX-License-Identifier: MIT
"""The Debian source package (cmake/packages/debian) makes the packages of scripts/package: with the same texts, from
the same libraries. This test compares lists that must agree."""
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTROL = ROOT / "cmake" / "packages" / "debian" / "control"


def paragraphs():
    """Returns the fields of each paragraph of debian/control; continued lines are joined by line ends."""
    found = []
    for paragraph in CONTROL.read_text().strip().split("\n\n"):
        fields = {}
        for line in paragraph.splitlines():
            if line.startswith(" "):
                fields[key] += "\n" + line[1:]
            else:
                key, _, fields_value = line.partition(":")
                fields[key] = fields_value.strip()
        found.append(fields)
    return found[0], {fields["Package"]: fields for fields in found[1:]}


def cmake():
    return (ROOT / "cmake" / "HsiPackages.cmake").read_text()


def test_the_same_packages():
    """Except for the CUDA modules, which need packages outside Debian's main archive."""
    lists = re.findall(r"CPACK_COMPONENTS_ALL ([^)]*)\)", cmake())
    assert set(" ".join(lists).split()) == set(paragraphs()[1]) | {"gdal-hsi-cuda"}


def test_the_same_words():
    for name, fields in paragraphs()[1].items():
        told = re.search(rf'CPACK_COMPONENT_{name.upper()}_DESCRIPTION "(.*?)"\)', cmake(), re.S).group(1)
        assert fields["Description"].partition("\n")[2].split() == told.split(), name
        section = re.search(rf"CPACK_DEBIAN_{name.upper()}_PACKAGE_SECTION (\w+)", cmake())
        assert fields.get("Section", "science") == (section.group(1) if section else "science"), name
        for kind in ("Recommends", "Suggests"):
            said = re.search(rf'CPACK_DEBIAN_{name.upper()}_PACKAGE_{kind.upper()} "(.*?)"', cmake())
            assert fields.get(kind, "") == (said.group(1) if said else ""), name


def test_what_building_needs():
    """The packages that scripts/packages installs for building equal those for Debian's builders, which already have
    git and a compiler."""
    wanted = subprocess.run([ROOT / "scripts" / "packages", "--list", "build"], capture_output=True, text=True, check=True)
    told = {re.match("[a-z0-9.+-]+", entry.strip()).group() for entry in paragraphs()[0]["Build-Depends"].split(",")}
    assert set(wanted.stdout.split()) - {"git", "g++"} <= told


def test_everything_that_it_is_made_of_is_there():
    """Checks the files that scripts/debian_source fills in and copies."""
    for name in ("changelog.in", "copyright.in", "qgis/prerm", "debian/rules", "debian/source/format", "debian/watch"):
        assert (ROOT / "cmake" / "packages" / name).read_text().strip(), name
    assert (ROOT / "cmake" / "packages" / "debian" / "rules").stat().st_mode & 0o100
    assert re.search(r"^project\(gdal_hsi VERSION \d+\.\d+\.\d+ ", (ROOT / "CMakeLists.txt").read_text(), re.M)
