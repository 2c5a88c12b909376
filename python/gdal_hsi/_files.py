# SPDX-License-Identifier: MIT
"""Files: the executables as child processes, so that no libgdal is loaded into Python beside that of rasterio or osgeo."""
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import numpy as np

from ._errors import Error, MissingFile, UsageError, WrongType, warn

NO_PLACE = "Install gdal-hsi, put gdal_hsi on PATH, or set HSI_BIN_DIR to its folder."


def executable():
    """The suite's executable: that of $HSI_BIN_DIR, of this package, or the first on PATH."""
    folder = os.environ.get("HSI_BIN_DIR")
    places = [pathlib.Path(folder) / "gdal_hsi"] if folder else [pathlib.Path(__file__).parent / "bin" / "gdal_hsi"]
    for place in places:
        if place.is_file():
            return str(place)
    found = None if folder else shutil.which("gdal_hsi")
    if found is None:
        raise Error("the executable gdal_hsi was not found", NO_PLACE)
    return found


def main():
    """The command gdal_hsi of a package that pip has built."""
    program = executable()
    os.execv(program, [program, *sys.argv[1:]])


def _words(arguments):
    for value in arguments:
        if isinstance(value, (list, tuple)):
            yield from _words(value)
        else:
            word = os.fsdecode(value) if isinstance(value, (os.PathLike, bytes)) else str(value)
            if isinstance(value, float):
                word = word[:-2] if word.endswith(".0") else word  # 3.0 is a whole number
            if "\0" in word:
                raise UsageError(f"{word[:60]!r} has a character that arguments cannot have (NUL)", "Leave it out.")
            yield word


@functools.lru_cache(maxsize=None)
def _values(suite, tool):
    """How many words follow each option of a tool, by name and alias."""
    told = subprocess.run([suite, tool, "--json-usage"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          start_new_session=True)
    if told.returncode != 0:
        return {}  # the call says what is wrong
    return {name: a["values"] for a in json.loads(told.stdout)["arguments"] for name in [a["name"], *a["aliases"]]}


def command(tool, positional, options):
    """The command line: options=True is a flag; lists are the values of one that takes several, else each value a time."""
    from ._options import plain
    words = [executable(), tool]
    for name, value in options.items():
        value = plain(value, name)
        option = "-" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value == []:
            raise UsageError(f"{name}: the list is empty", "Give a value, or leave it out.")
        if value is True:
            if _values(words[0], tool).get(option[1:], 0) > 0:
                raise UsageError(f"{name}: True is not a valid value", "Give a number or a text; this option is not a flag.")
            words.append(option)
        elif isinstance(value, (list, tuple)) and value and (isinstance(value[0], (list, tuple)) or
                                                             _values(words[0], tool).get(option[1:], len(value)) == 1):
            for one in value:
                words += [option, *_words([one])]
        else:
            words += [option, *_words([value])]
    return words + list(_words(positional))


def _missing(words, message):
    """Whether one of the arguments that the message names is a path where there is nothing."""
    return any(f"'{word}'" in message and not word.startswith("-") and "://" not in word and not re.match(r"/vsi|[A-Za-z0-9_]{2,}:", word)
               and not os.path.lexists(word) for word in words if os.path.basename(word))


def child(words, progress=None):
    """Runs a tool to its end and returns (what it has printed, its warnings). Ctrl-C ends it cleanly: it removes what it
    has begun.
    """
    from ._functions import _bar
    show, end = _bar(progress, pathlib.Path(words[0]).name + " " + words[1])
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    told = []
    reader = threading.Thread(target=lambda: told.append(process.stderr.read()), daemon=True)
    reader.start()
    printed = b""
    try:
        while True:
            piece = process.stdout.read1(4096)
            if not piece:
                break
            printed += piece
            if show is not None:
                shares = re.findall(rb"(\d+)(?=\.)", printed[printed.rfind(b"\n") + 1:])
                if shares:
                    show(min(1.0, int(shares[-1]) / 100))
        process.wait()
    except BaseException:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    finally:
        end()
        reader.join()
        process.stdout.close()
        process.stderr.close()
    lines = b"".join(told).decode(errors="replace").splitlines()
    if process.returncode != 0:
        begin = next((i for i, line in enumerate(lines) if line.startswith("ERROR: ")), None)
        message = lines[begin][len("ERROR: "):] if begin is not None else f"{words[1]} ended with code {process.returncode}"
        advice = "\n".join(lines[begin + 1:]) if begin is not None else "\n".join(lines)
        raise (UsageError if process.returncode == 2 else MissingFile if _missing(words[2:], message) else Error)(message, advice)
    if show is not None:
        show(1.0)
    warned = [line[len("Warning: "):] for line in lines if line.startswith("Warning: ")]
    return printed.decode(errors="replace"), warned


def run(tool, *arguments, progress=None, **options):
    """Runs a tool on files, as its command line does.

    Parameters
    ----------
    tool : str
        Name of the tool without gdal_hsi_, such as "spp".
    arguments : paths
        Its arguments in their order.
    progress : bool or function
        True for a progress bar (tqdm), or a function of the completed share, 0 to 1.
    options : keywords
        Its options, with _ in the place of -: True for a flag, a list for an option with several values, or for an option that
        is given several times. A trailing _ is dropped (lambda_).

    Returns
    -------
    str
        The output of the tool.

    Raises
    ------
    Error
        With the message and the advice of the tool; UsageError (ValueError) and MissingFile (FileNotFoundError) among them.

    Examples
    --------
    >>> import gdal_hsi as hsi
    >>> printed = hsi.run("synth", "scene.tif", size=(60, 50, 20))
    >>> printed = hsi.run("spp", "scene.tif", "smooth.tif", ws=7)
    """
    quiet = {} if progress else {"q": True}
    printed, warned = child(command(tool, arguments, {**options, **quiet}), progress)
    for text in warned:
        warn(text)
    return printed


def info(path, **options):
    """The report of gdal_hsi_info on a file.

    Parameters
    ----------
    path : path
        A scene, a library or a label file.
    options : keywords
        Options of gdal_hsi_info, such as count=True.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WrongType (TypeError)
        The argument is an array.
    MissingFile (FileNotFoundError)
        The file does not exist.

    Examples
    --------
    >>> import gdal_hsi as hsi
    >>> printed = hsi.run("synth", "scene.tif", size=(60, 50, 20))
    >>> facts = hsi.info("scene.tif")
    >>> facts["size"], len(facts["wavelengths_nm"])
    ([60, 50, 20], 20)
    """
    if not isinstance(path, (str, os.PathLike)):
        raise WrongType(f"path is of type {type(path).__name__}, and info() reads a file", "Give a path; statistics(x) describes an array.")
    printed, warned = child(command("info", [path], {**options, "json": True}))
    for text in warned:
        warn(text)
    return json.loads(printed)


def library(path):
    """The spectra of a library: the arguments of Spectra."""
    facts = info(path, values=True)
    if "spectra" not in facts:
        raise UsageError(f"'{os.fsdecode(path)}' is a scene, not a spectral library", "Make a library with spectra(), or give a library.")
    numbers = lambda values: np.array([np.nan if v is None else v for v in values], dtype=float)  # noqa: E731
    known = {key: numbers(facts[name]) for key, name in (("wavelengths", "wavelengths_nm"), ("fwhm", "fwhm_nm")) if facts.get(name)}
    return {"spectra": np.array([numbers(one["values"]) for one in facts["spectra"]]), "names": [one["name"] for one in facts["spectra"]],
            **{key: values for key, values in known.items() if np.isfinite(values).all()}}


def _advice_for_functions(advice, name):
    """What the tool advises, to somebody who has called a function."""
    advice = re.sub(r"\s*Run '[^']*--help' for all \w+\.", "", advice)
    return f"Remove it, or use run('{name}', ..., overwrite=True), which replaces it." if "-overwrite" in advice else advice


def run_function(signature, options, inputs, wanted, further):
    """A function whose scene is a path: the tool itself, from files to files."""
    from ._arrays import Model, exact_number, model_text
    from ._functions import Result, python_name
    from ._spectra import Spectra, bands_of_spectrometer
    given = dict(options)
    made = [a for a in signature.made]
    out = further["out"]
    outs = [out] if out is None or isinstance(out, (str, os.PathLike)) else list(out)
    if made and (out is None or len(outs) != len(made)):
        names = ", ".join(python_name(a["name"]) for a in made)
        raise UsageError(f"results are files if src is a path, but out does not name them: {names}",
                         "Give out='result.tif'" + (" (a list of them)" if len(made) > 1 else "") + ", or an array.")
    if not made and out is not None:
        raise UsageError(f"out={out!r}: {signature.name} has no result that can be a file", "Leave it out.")
    for name in ("band_axis", "wavelengths", "fwhm", "names"):
        value = further[name]
        if value is not None and not (name == "band_axis" and isinstance(value, int) and value == 0):
            raise UsageError(f"{name} applies to arrays, but src is a path", "Leave it out: the file has its own metadata.")
    if further["nodata"] is not None:
        given["srcnodata"] = exact_number(further["nodata"], "nodata")
    positional, results = [], {}
    with tempfile.TemporaryDirectory(prefix="gdal_hsi_") as folder:
        for argument, value in inputs:
            if argument.get("content") == "model" and not isinstance(value, (str, os.PathLike)) or isinstance(value, Model):
                path = pathlib.Path(folder) / (argument["name"] + ".json")
                path.write_text(model_text(value, argument["name"]), encoding="utf-8")
                value = path
            elif argument.get("content") == "spectra" and not isinstance(value, (str, os.PathLike)):
                path = pathlib.Path(folder) / (argument["name"] + ".csv")
                (bands_of_spectrometer(value) if argument["name"] == "bands" else Spectra(value)).save(path)
                value = path
            elif not isinstance(value, (str, os.PathLike)):
                raise UsageError(f"{python_name(argument['name'])} is an array, but src is a path", "Give only paths or only arrays.")
            if argument["positional"]:
                positional.append((argument["name"], value))
            else:
                given[argument["name"]] = value
        for argument, path in zip(made, outs):
            if argument["positional"]:
                positional.append((argument["name"], path))
            else:
                given[argument["name"]] = path
            results[python_name(argument["name"])] = path
        for role, path in wanted.items():
            if path is True:
                raise UsageError(f"{python_name(role)}=True: results are files if src is a path", "Give a path for this output.")
            given[role] = results[python_name(role)] = path
        order = [a["name"] for a in signature.definition["arguments"] if a["positional"]]
        report = pathlib.Path(folder) / "report.json"
        given["report"] = report
        words = [value for name, value in sorted(positional, key=lambda p: order.index(p[0]))]
        try:
            _, warned = child(command(signature.name, words, given), further["progress"])
        except Error as error:
            raise type(error)(error.message, _advice_for_functions(error.advice, signature.name)) from None
        facts = {"report": json.loads(report.read_text(encoding="utf-8"))} if report.exists() else {}
    for text in warned:
        warn(text)
    if not results and not further["full"]:
        return facts["report"].get("result", facts["report"])
    if len(results) == 1 and not further["full"]:
        return next(iter(results.values()))
    return Result(results, facts, warned)
