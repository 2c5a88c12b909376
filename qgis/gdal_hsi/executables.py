# SPDX-License-Identifier: MIT
"""Finds the executable gdal_hsi and asks it for its tools. Knows no QGIS."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import tempfile

from .schema import SCHEMA

PROGRAM = "gdal_hsi"
SECONDS = 60  # for --json-usage, which takes a tenth of one on an idle machine with warm caches
NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # on Windows


class NotUsable(Exception):
    """There is no executable that this plugin can use; the text says why and what to do."""


def find(folder):
    """The path of gdal_hsi: in the folder of the setting (which may be the file itself), or else on PATH, or else that
    of a wheel that QGIS's Python has."""
    if folder:
        path = folder if os.path.isfile(folder) else shutil.which(PROGRAM, path=folder)
        if path and os.access(path, os.X_OK):
            return path
        raise NotUsable("The folder '%s' holds no executable %s. Correct it in Settings > Options > Processing > "
                        "Providers > GDAL-HSI; left empty, PATH is searched." % (folder, PROGRAM))
    path = shutil.which(PROGRAM) or in_wheel()
    if path:
        return path
    raise NotUsable("The executable %s is not on PATH. Install the gdal-hsi suite, or name the folder of its "
                    "executables in Settings > Options > Processing > Providers > GDAL-HSI." % PROGRAM)


def in_wheel():
    """Where pip has put it, which need not be on the PATH of a desktop; None where it has not. The package is asked for
    by its metadata: to this Python gdal_hsi is the plugin."""
    try:
        path = str(importlib.metadata.distribution("gdal-hsi").locate_file("gdal_hsi/bin/" + PROGRAM))
    except importlib.metadata.PackageNotFoundError:
        return None
    return path if os.access(path, os.X_OK) else None


def ask(path):
    """What the executable says of its tools."""
    try:
        done = subprocess.run([path, "--json-usage"], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                              check=False, creationflags=NO_WINDOW)
    except subprocess.TimeoutExpired:
        raise NotUsable("'%s --json-usage' gave no answer in %d seconds." % (path, SECONDS)) from None
    except OSError as error:
        raise NotUsable("'%s' does not start: %s." % (path, error.strerror or error)) from None
    try:
        usage = json.loads(done.stdout.decode("utf-8")) if done.returncode == 0 else None
    except ValueError:
        usage = None
    if usage is None:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise NotUsable("'%s --json-usage' does not tell its tools%s. Is it older than this plugin, or not of the "
                        "gdal-hsi suite? Install a newer one." % (path, " (%s)" % said[0] if said else ""))
    return usage


def check(usage, path):
    """The usage, when this plugin understands it."""
    schema = usage.get("schema") if isinstance(usage, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise NotUsable("'%s' describes its tools in a newer way (schema %d) than this plugin knows (%d). "
                        "Update the plugin." % (path, schema, SCHEMA))
    if schema != SCHEMA or not isinstance(usage.get("tools"), list):
        raise NotUsable("'%s --json-usage' is not that of the gdal-hsi suite." % path)
    return usage


def stamp(path):
    """What changes when the executable does."""
    path = os.path.realpath(path)
    facts = os.stat(path)
    return {"path": path, "mtime": facts.st_mtime_ns, "size": facts.st_size}


def usage_of(path, cache):
    """What the executable says of its tools, from the file `cache` while the executable is the same. A cache that
    cannot be read or written costs time only."""
    mark = stamp(path)
    try:
        with open(cache, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["stamp"] == mark:
            return check(kept["usage"], path)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    usage = check(ask(path), path)
    keep(cache, {"stamp": mark, "usage": usage})
    return usage


def keep(cache, content):
    """Writes the file whole or not at all: several QGIS may start at once."""
    folder = os.path.dirname(cache)
    temporary = None
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as file:
            temporary = file.name
            json.dump(content, file)
        os.replace(temporary, cache)
    except OSError:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
