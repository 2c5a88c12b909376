# SPDX-License-Identifier: MIT
"""From the values of a form to a tool's arguments. Knows no QGIS."""

import re


class WrongValue(ValueError):
    """A value that cannot be put on the command line; the text tells the user."""


def number_text(value, kind):
    if kind == "integer":
        return str(int(value))
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def items_of(parameter, value):
    """The items of a repeatable argument: a list, or a text with | or ends of lines between them, as QGIS writes
    creation options. Between numbers there may be blanks and commas as well."""
    if isinstance(value, (list, tuple)):
        items = [str(v) for v in value]
        if parameter.argument["type"] == "text" and all(isinstance(v, int) for v in value):
            return [",".join(items)] if items else []  # band numbers
    else:
        numbers = parameter.argument["type"] in ("integer", "number")
        items = re.split(r"[|\s,;]+" if numbers else r"[|\r\n]+", str(value))
    return [item.strip() for item in items if item.strip()]


def several_words_of(parameter, value):
    """The words of each use of a repeatable option that takes several at a time: uses have | or ends of lines between
    them, words blanks (or commas, between numbers), and a name with blanks stands in quotes. @FILE may stand for all."""
    numbers = parameter.argument["type"] in ("integer", "number")
    uses = []
    for item in value if isinstance(value, (list, tuple)) else re.split(r"[|\r\n]+", str(value)):
        words = re.findall(r"[^\s,;]+" if numbers else r'"[^"]*"|\S+', str(item))
        words = [word.strip('"') for word in words]
        if not words:
            continue
        if len(words) != parameter.words and not (
                parameter.argument.get("lists") and len(words) == 1 and words[0].startswith("@")):
            raise WrongValue("%s: %d values are needed (%s), not '%s'" % (
                parameter.label, parameter.words, parameter.argument.get("value_name", ""), item))
        uses.append(words)
    return uses


def words_of(parameter, value):
    """The words behind an option that takes several."""
    words = [str(v) for v in value] if isinstance(value, (list, tuple)) else re.split(r"[\s,;]+", str(value).strip())
    if len(words) != parameter.words:
        raise WrongValue("%s: %d values are needed (%s), not '%s'" % (
            parameter.label, parameter.words, parameter.argument.get("value_name", ""), value))
    return words


def is_default(parameter, value):
    if parameter.default is None or parameter.kind == "flag":
        return False
    if parameter.kind in ("integer", "number"):
        return float(value) == float(parameter.default)
    if parameter.kind == "choice":
        names = [c["name"] for c in parameter.argument["choices"]]
        return value == names[parameter.default]
    return value == parameter.default


def option_words(parameter, value):
    """The words of one option; none where the value is what holds without it: some options exclude one another."""
    name = "-" + parameter.argument["name"]
    if value is None or value == "" or value is False or value == [] or is_default(parameter, value):
        return []
    if parameter.kind == "flag":
        return parameter.argument.get("words", [name])
    if parameter.kind == "list" and parameter.words > 1:
        return [word for words in several_words_of(parameter, value) for word in (name, *words)]
    if parameter.kind == "list":
        return [word for item in items_of(parameter, value) for word in (name, item)]
    if parameter.words > 1:
        return [name, *words_of(parameter, value)]
    if parameter.kind in ("integer", "number"):
        return [name, number_text(value, parameter.kind)]
    text = str(value).strip() if parameter.kind == "text" else str(value)
    return [name, text] if text else []


def arguments_of(tool, values):
    """values: name of the parameter in QGIS -> bool, number, name of the choice, text, path, list. Options, then what
    has no name, in the order of the tool's definition. -overwrite, which the form sets, goes with an output only."""
    options, positional = [], {}
    if not any(p.is_output and not p.argument["shared"] and values.get(p.name) or p.argument["role"] == "destination"
               for p in tool.parameters):
        values = {**values, "overwrite": False}
    for parameter in tool.parameters:
        value = values.get(parameter.name)
        if not parameter.argument["positional"]:
            options += option_words(parameter, value)
        elif value not in (None, ""):
            positional[parameter.argument["name"]] = str(value)
        elif parameter.stands_for_none:
            positional[parameter.argument["name"]] = "none"
        elif parameter.argument["required"]:
            raise WrongValue("%s: a value is needed" % parameter.label)
    return options + [positional[name] for name in tool.order if name in positional]
