# SPDX-License-Identifier: MIT
"""Values of options as people have them, to what JSON and a command line have: numbers of NumPy and others, lists, paths."""
import collections.abc
import decimal
import math
import numbers
import os

import numpy as np

from ._errors import UsageError
from ._library import text
from ._signatures import is_list, limits, python_name

LARGEST = 2**63  # the library's whole numbers have 64 bits


def plain(value, name="a value", advice="Give it as the documentation of the function says."):
    """The value as a bool, number, text or None, or a list of such. Raises where it is none of them."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if np.ma.is_masked(value):
        raise UsageError(f"{name}: {value!r} has masked values", "Give a number for each value.")
    try:
        if hasattr(value, "__array__"):
            value = np.asarray(value).tolist()
        if isinstance(value, os.PathLike):
            return os.fsdecode(value)
        for kind, of in ((bool, bool), (str, str.__str__), (numbers.Integral, int), ((numbers.Real, decimal.Decimal), float)):
            if isinstance(value, kind):
                return of(value)
    except OverflowError:
        return math.inf
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        pass
    if isinstance(value, collections.abc.Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [plain(one, name, advice) for one in value]
    raise UsageError(f"{name}: {value!r} is not a number, a text, or a list of these", advice)


def _element(argument, name, value):
    """One of the values of an option that is no flag."""
    if value == []:
        raise UsageError(f"{name}: the list is empty", _wanted(argument))
    if isinstance(value, list):
        return [_element(argument, name, one) for one in value]
    of_numbers = argument["type"] in ("integer", "number")
    if value is None or isinstance(value, bool):
        raise UsageError(f"{name}: {value!r} is not a {'number' if of_numbers else 'number or text'}", _wanted(argument))
    if value == "":
        raise UsageError(f"{name}: the text is empty", _wanted(argument))
    if isinstance(value, str):
        text(value, name)
    elif isinstance(value, int) and abs(value) >= LARGEST:
        raise UsageError(f"{name}: a whole number of {value.bit_length()} bits is too large", _wanted(argument))
    elif not math.isfinite(value):
        if of_numbers:
            raise UsageError(f"{name}: {value!r} is not a finite number", _wanted(argument))
        return str(value)  # a word to the library, which knows where nan is one
    return value


def _wanted(argument):
    kind = {"integer": "a whole number", "number": "a number", "flag": "True"}.get(argument["type"], "a text or a number")
    kind = kind if argument["values"] < 2 else f"{argument['values']} values, each {kind}"
    choices = ", ".join(one["name"] for one in argument.get("choices", []))
    kind = f"one of {choices}" if choices else kind + limits(argument)
    return f"Give {kind}, or None for the default."


def option_value(argument, value, name=None):
    """The value of an option as the library takes it. None leaves it out."""
    name = name or python_name(argument["name"])
    if value is None or value is True and argument["type"] == "flag":
        return value
    value = plain(value, name, _wanted(argument))
    if argument["type"] == "flag":
        if not isinstance(value, bool):
            raise UsageError(f"{name}: {value!r} is not True or False", _wanted(argument))
        return value
    value = _element(argument, name, value)
    return ",".join(str(one) for one in value) if isinstance(value, list) and is_list(argument) else value


def options_for(definition, options, names=None):
    """The options of a call, by the tool's names. names: what the caller calls them, where that is something else."""
    arguments = {one["name"]: one for one in definition["arguments"]}
    taken = {name: option_value(arguments[name], value, (names or {}).get(name)) for name, value in options.items()}
    return {name: value for name, value in taken.items() if value is not None and value is not False}
