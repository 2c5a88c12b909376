# SPDX-License-Identifier: MIT
"""The plugin's code for Qt 5 and Qt 6 (QGIS 3 and QGIS 4): it must use Qt only through qgis.PyQt, enumerations by their
full names, and nothing that Qt 6 removed. The test reads the sources without QGIS, and then looks the names up in the
PyQt5, the PyQt6 and the QGIS of this machine."""

import ast
import configparser
import json
import subprocess
import sys

import pytest

from conftest import PLUGINS, ROOT, have_qgis

SOURCES = [*sorted((PLUGINS / "gdal_hsi").glob("*.py")), ROOT / "tests/qgis/session.py", ROOT / "tests/qgis/open_in_qgis.py",
           *(path for path in [ROOT / "scripts/qgis_picture"] if path.read_text().startswith("#!/usr/bin/python3"))]
GONE = {"exec_", "QRegExp", "QDesktopWidget", "QTextCodec", "toTime_t", "fromTime_t", "setMargin"}


class Named:
    """The names that a source imports from QGIS and Qt, the names that it uses, and the mistakes found."""

    def __init__(self, text):
        self.imported = {}  # name here -> (module, name there)
        self.chains, self.faults = set(), []
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.modules(node, [alias.name for alias in node.names])
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                self.modules(node, [node.module])
                if node.module.split(".")[0] == "qgis":
                    for alias in node.names:
                        self.imported[alias.asname or alias.name] = (node.module, alias.name)
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if name in GONE:
                self.faults.append("line %d: Qt 6 has no %s" % (node.lineno, name))
            if not isinstance(node, ast.Attribute) or id(node) in inner:
                continue
            words, root = [node.attr], node.value
            while isinstance(root, ast.Attribute):
                words.insert(0, root.attr)
                root = root.value
            if not isinstance(root, ast.Name) or root.id not in self.imported:
                continue
            self.chains.add((root.id, *words))
            if len(words) == 1 and words[0][0].isupper() and id(node) not in called:
                self.faults.append("line %d: %s.%s, an enumeration's value without its enumeration"
                                   % (node.lineno, root.id, words[0]))

    def modules(self, node, names):
        self.faults += ["line %d: %s instead of qgis.PyQt" % (node.lineno, name) for name in names
                        if name.split(".")[0] in ("PyQt5", "PyQt6", "PySide2", "PySide6", "sip")]

    def paths(self):
        """Returns (module, name, ...) of all imported and used names."""
        return sorted({*self.imported.values(),
                       *((*self.imported[root], *words) for root, *words in self.chains)})


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_names_are_those_of_both(path):
    assert Named(path.read_text()).faults == []


@pytest.mark.parametrize("text, fault", [
    ("from PyQt5.QtCore import Qt", "PyQt5.QtCore instead"), ("import PyQt6.QtGui", "PyQt6.QtGui instead"),
    ("from qgis.PyQt.QtCore import Qt\nQt.AlignLeft", "line 2: Qt.AlignLeft"),
    ("from qgis.core import Qgis as Q\nf(Q.Warning)", "line 2: Q.Warning"),
    ("dialog.exec_()", "no exec_"), ("from qgis.PyQt.QtCore import QRegExp\nQRegExp('a')", "no QRegExp")])
def test_other_names_are_noticed(text, fault):
    assert any(fault in one for one in Named(text).faults), Named(text).faults


def test_full_names_and_nested_classes_pass():
    named = Named("from qgis.core import A\nfrom qgis.PyQt.QtCore import Qt\n"
                  "A.Kind.One\nA.Item(1)\nA.make()\nQt.AlignmentFlag.AlignLeft\nother.Thing\n")
    assert named.faults == []
    assert ("qgis.PyQt.QtCore", "Qt", "AlignmentFlag", "AlignLeft") in named.paths()
    assert ("qgis.core", "A", "Kind", "One") in named.paths()


LOOK_UP = """
import importlib, json, sys
missing = []
for module, *words in json.load(sys.stdin):
    try:
        found = importlib.import_module(module)
        for word in words:
            found = getattr(found, word)
    except (AttributeError, ImportError) as error:
        missing.append([module, *words, str(error)])
print(json.dumps(missing))
"""


def missing(paths):
    """Returns the missing names. Each is searched in a separate process, since one process cannot load both Qt 5 and Qt
    6."""
    done = subprocess.run([sys.executable, "-c", LOOK_UP], input=json.dumps(paths), capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def all_paths():
    return sorted({path for source in SOURCES for path in Named(source.read_text()).paths()})


@pytest.mark.parametrize("binding", ["PyQt5", "PyQt6"])
def test_qt_has_them(binding):
    if missing([(binding + ".QtGui", "QColor")]):
        pytest.skip("no %s on this machine (python3-%s)" % (binding, binding.lower()))
    paths = [(module.replace("qgis.PyQt", binding), *words) for module, *words in all_paths()
             if module.startswith("qgis.PyQt")]
    assert paths and missing(paths) == []
    assert missing([(binding + ".QtCore", "Qt", "AlignmentFlag", "AlignLeft")]) == []
    assert missing([(binding + ".QtCore", "Qt", "NoSuchFlag", "AlignLeft")])


def test_qgis_has_them():
    if not have_qgis():
        pytest.skip("no QGIS with Python bindings on this machine (python3-qgis)")
    assert missing(all_paths()) == []


def test_the_word_that_qgis_4_goes_by():
    data = configparser.ConfigParser()
    data.read(PLUGINS / "gdal_hsi" / "metadata.txt")
    assert data["general"]["qgisMinimumVersion"] == "3.22"
    assert data["general"]["qgisMaximumVersion"] == "4.99"
