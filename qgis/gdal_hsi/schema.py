# SPDX-License-Identifier: MIT
"""From a tool's definition as JSON (docs/json_usage.md) to the parameters of a form.

Knows no QGIS and no single tool."""

import re
from dataclasses import dataclass, field

SCHEMA = 1  # of the JSON, the newest that is understood

FILTERS = {  # content of a file -> what a file dialog offers; the first extension is that of temporary files
    "model": [("Models", ["json"])],
    "spectra": [("ENVI spectral libraries", ["sli"]), ("Tables", ["csv"])],
    "text": [("Text files", ["txt"])],
}
KNOWN_EXTENSIONS = {"json": "JSON files", "csv": "CSV files"}
LABEL = 70  # characters of a label that may hold more than the first words
INPUTS = {"raster": "raster", "labels": "labels", "vector": "vector"}
OUTPUTS = {"raster": "raster_out", "vector": "vector_out"}


@dataclass
class Parameter:
    """One parameter of the form, made of one argument of the tool."""
    name: str  # in QGIS
    argument: dict
    kind: str  # see kind_of
    label: str
    help: str
    optional: bool
    advanced: bool
    default: object = None
    filter: str = ""
    labels: str = ""  # of a field of vector labels: the parameter with the labels
    stands_for_none: bool = False  # left empty, the tool gets the word none
    words: int = 1

    @property
    def is_input(self):
        return self.kind in ("raster", "labels", "vector")

    @property
    def is_output(self):
        return self.kind.endswith("_out")


@dataclass
class Tool:
    name: str
    title: str
    description: str
    group: str
    parameters: list = field(default_factory=list)
    examples: list = field(default_factory=list)
    order: list = field(default_factory=list)  # names of the arguments without a name, as on the command line

    @property
    def short_name(self):
        """SPP for 'Spatial preprocessing (SPP)'; the title where it has no such ending. Names layers."""
        match = re.search(r"\(([A-Z]{2,6})\)$", self.title)
        return match.group(1) if match else self.title

    def parameter(self, name):
        """The parameter by its name in QGIS, or None."""
        return next((p for p in self.parameters if p.name == name), None)


def label_of(summary):
    """The first clause of a summary; 'With -x: what' becomes 'What (with -x)'."""
    text, condition = summary, ""
    match = re.match(r"With (-[\w-]+(?: [a-z]+)?): (.*)", text)
    if match:
        condition, text = " (with %s)" % match.group(1), match.group(2)
    text = re.sub(r"^Also (write|save) ", "", text)
    text = re.sub(r",? to FILE\b| FILE\b", "", text)
    text = re.split(r"[;:] | \((?=[a-z])", text)[0]
    first, *more = text.split(", ")
    text = first
    while more and len(first.split()) <= 3 and len(text) + len(more[0]) <= LABEL:
        text += ", " + more.pop(0)
    if text.count("(") > text.count(")"):
        text = text[:text.rindex("(")].rstrip()
    return text[:1].upper() + text[1:] + condition


def group_of(arguments):
    """What a tool is for, told from what goes in and comes out."""
    roles = {a["role"] for a in arguments}
    contents = {a.get("content") for a in arguments if a["positional"]}
    if contents & {"labels", "model"}:
        return "Classification"
    if contents & {"vector", "spectra"}:
        return "Targets and unmixing"
    if any(a["positional"] and a["role"] == "option" for a in arguments):
        return "Chains"
    if "source" not in roles:
        return "Synthetic scenes" if "destination" in roles else "Other"
    return "Transformation" if "destination" in roles else "Information"


def kind_of(argument, has_labels):
    """raster, labels, vector, file; raster_out, vector_out, file_out; flag, choice, integer, number, type (of pixels),
    field (of labels), text, list."""
    role, content, kind = argument["role"], argument.get("content"), argument["type"]
    if role in ("source", "input"):
        return INPUTS.get(content or ("raster" if role == "source" else ""), "file")
    if role in ("destination", "output"):
        return OUTPUTS.get(content or ("raster" if role == "destination" else ""), "file_out")
    if content:  # -report, which all tools have and which counts as no output
        return "file_out"
    if kind == "flag":
        return "flag"
    if "choices" in argument and not argument["repeatable"]:
        return "choice"
    if argument["repeatable"]:
        return "list"
    if argument["values"] > 1:
        return "text"
    if kind in ("integer", "number"):
        return kind
    if argument.get("vocabulary") == "pixel_types":
        return "type"
    if has_labels and re.match(r"(.*-)?field$", argument["name"]):
        return "field"
    return "text"


def filter_of(argument):
    """'JSON files (*.json)' for a file; what its value is called ('FILE.json') or its own name ('csv') decides
    first."""
    extension = argument.get("value_name", "").rpartition(".")[2].lower()
    for word in (extension, argument["name"].lower()):
        if word in KNOWN_EXTENSIONS:
            filters = [(KNOWN_EXTENSIONS[word], [word])]
            break
    else:
        filters = FILTERS.get(argument.get("content"), [])
        if argument.get("content") == "spectra" and argument["role"] == "input":
            filters = filters + [("MATLAB files", ["mat"])]  # read, never written
    texts = ["%s (%s)" % (name, " ".join("*." + e for e in extensions)) for name, extensions in filters]
    return ";;".join(texts + (["All files (*)"] if not texts or argument["role"] in ("source", "input") else []))


def default_of(argument, kind):
    """The default as a value of the form; None where the schema has none."""
    if kind == "flag":
        # A file dialog has asked already, and QGIS names temporary files itself.
        return argument["name"] == "overwrite"
    text = argument.get("default")
    if text is None:
        return None
    if kind in ("integer", "number"):
        return int(text) if kind == "integer" else float(text)
    if kind == "choice":
        names = [c["name"] for c in argument["choices"]]
        return names.index(text) if text in names else None
    return text


def help_of(argument, kind, repeated):
    """Whole sentences: what the argument is, its choices, what holds without it, and its name on the command line."""
    text = argument["summary"] + "."
    for choice in argument.get("choices", []):
        text += "\n%s: %s" % (choice["name"], choice["summary"])
    facts = []
    if argument.get("unit"):
        facts.append("Unit: %s." % argument["unit"])
    if argument["values"] > 1:
        facts.append("%d values: %s." % (argument["values"], argument.get("value_name", "")))
    if argument.get("lists"):
        facts.append("Or @FILE, which lists them, line by line.")
    if repeated:
        facts.append("Several: with | between them.")
    if argument.get("default_note"):
        facts.append("Default: %s." % argument["default_note"])
    elif kind == "flag" and argument["name"] == "overwrite":
        facts.append("Set in QGIS unless you take it away.")
    option = argument["name"] if not argument["positional"] else argument.get("option")
    if option:
        facts.append("Option -%s." % option)
    return "\n".join([text] + ([" ".join(facts)] if facts else []))


def is_hidden(argument):
    """What has no place in a form: QGIS shows the progress that -q would hide, and starts one process."""
    return argument["shared"] and argument["name"] in ("q", "ranks")


def of_form(arguments):
    """A form has every src and dst. A call that does without them, gdal_hsi_index -list, is for the terminal."""
    if all(a["name"] != "list" for a in arguments):
        return arguments
    return [{**a, "required": a["required"] or a["positional"]} for a in arguments if a["name"] not in ("list", "json")]


def parameters_of(arguments):
    """The form: scenes and files without a name first, then options, then what comes out."""
    labels = next((a["name"] for a in arguments if a["role"] == "input" and a.get("content") == "labels"
                   and not a["shared"]), "")  # not a mask
    made, names = [], set()
    for argument in arguments:
        if is_hidden(argument):
            continue
        kind = kind_of(argument, bool(labels))
        name = re.sub(r"\W", "_", argument["name"])
        while name.lower() in names:  # QGIS does not tell C from c
            name += "_"
        names.add(name.lower())
        none = bool(argument["required"] and kind in ("raster", "labels", "vector")
                    and re.search(r"\bnone for no \w+", argument["summary"]))
        default = default_of(argument, kind)
        label = label_of(argument["summary"])
        if argument.get("unit"):
            label += " [%s]" % argument["unit"]
        files = argument["role"] in ("source", "destination", "input") or (
            argument["role"] == "output" and not argument["shared"])
        needed = argument["required"] and not none
        made.append(Parameter(
            name=name, argument=argument, kind=kind, label=label, help=help_of(argument, kind, kind == "list"),
            optional=kind != "flag" and not needed and (default is None or kind in ("list", "text")),
            advanced=not argument["required"] and not files and argument["group"] not in ("Arguments", "Options"),
            default=default, filter=filter_of(argument) if kind in ("file", "file_out") else "",
            labels=labels if kind == "field" else "", stands_for_none=none, words=argument["values"]))
    for parameter in made:
        if parameter.labels:
            parameter.labels = next(p.name for p in made if p.argument["name"] == parameter.labels)

    def place(parameter):
        if parameter.is_output:
            return 2 if parameter.argument["required"] else 3
        return 0 if parameter.argument["positional"] else 1
    return sorted(made, key=place)


COMPUTED = {
    "name": "computed", "summary": "Compute when looked at", "group": "Arguments", "type": "flag", "role": "option",
    "positional": False, "required": False, "repeatable": False, "values": 0, "value_name": "", "shared": False,
    "words": ["-of", "HSI"]}


def computed_parameter():
    """The choice of a dst that is a scene that computes, of a tool that can make one."""
    return Parameter(
        name=COMPUTED["name"], argument=COMPUTED, kind="flag", label=COMPUTED["summary"],
        help=COMPUTED["summary"] + ". The output is a small file, and its pixels are computed when they are shown or read. "
             "Whoever opens it needs the driver HSI of gdal-hsi in his GDAL, QGIS among them.\nOption -of HSI.",
        optional=False, advanced=False, default=False, words=0)


def with_computed(parameters):
    """Before what comes out."""
    at = next((k for k, p in enumerate(parameters) if p.is_output), len(parameters))
    return parameters[:at] + [computed_parameter()] + parameters[at:]


def tools_of(usage):
    """All tools of `gdal_hsi --json-usage`, by name."""
    made = {}
    for tool in usage["tools"]:
        parameters = parameters_of(of_form(tool["arguments"]))
        made[tool["name"]] = Tool(
            name=tool["name"], title=tool["title"], description=tool["description"],
            group=group_of(tool["arguments"]),
            parameters=with_computed(parameters) if tool.get("computes") else parameters,
            examples=tool.get("examples", []),
            order=[a["name"] for a in tool["arguments"] if a["positional"]])
    return made
