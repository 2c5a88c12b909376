# SPDX-License-Identifier: MIT
"""One tool as an algorithm of Processing. What the tool is comes from its definition."""

import html
import math
import os
import shlex

from qgis.core import (QgsProcessing, QgsProcessingAlgorithm, QgsProcessingException, QgsProcessingOutputString,
                       QgsProcessingParameterBoolean, QgsProcessingParameterDefinition, QgsProcessingParameterEnum,
                       QgsProcessingParameterField, QgsProcessingParameterFile, QgsProcessingParameterFileDestination,
                       QgsProcessingParameterMapLayer, QgsProcessingParameterNumber,
                       QgsProcessingParameterRasterDestination,
                       QgsProcessingParameterRasterLayer, QgsProcessingParameterString,
                       QgsProcessingParameterVectorDestination, QgsProcessingParameterVectorLayer,
                       QgsProcessingUtils, QgsProperty)
from qgis.PyQt.QtCore import QVariant
from qgis.PyQt.QtGui import QIcon

from . import command, process, styles
from .layers import NotAFile, raster_uri, source_of

PIXEL_TYPES = ["Byte", "Int8", "UInt16", "Int16", "UInt32", "Int32", "UInt64", "Int64", "Float32", "Float64"]
PRINTED = "PRINTED"
VECTOR = QgsProcessing.SourceType.TypeVectorAnyGeometry


def is_given(value):
    """Whether a form or a script has given a value."""
    return not (value is None or value == "" or (isinstance(value, QVariant) and value.isNull()))


def number(parameter, optional):
    argument = parameter.argument
    integer = parameter.kind == "integer"
    made = QgsProcessingParameterNumber(
        parameter.name, parameter.label,
        QgsProcessingParameterNumber.Type.Integer if integer else QgsProcessingParameterNumber.Type.Double,
        parameter.default, optional)
    if "minimum" in argument:
        made.setMinimum(argument["minimum"])
    if "maximum" in argument:
        made.setMaximum(argument["maximum"])
    if not integer:
        zeros = -math.floor(math.log10(abs(parameter.default))) - 1 if parameter.default else 0
        made.setMetadata({"widget_wrapper": {"decimals": 6 + max(0, zeros)}})
    return made


def definition_of(p):
    """The parameter of QGIS for one of the form."""
    optional = p.optional
    if p.kind == "raster":
        made = QgsProcessingParameterRasterLayer(p.name, p.label, None, optional)
    elif p.kind == "vector":
        made = QgsProcessingParameterVectorLayer(p.name, p.label, [VECTOR], None, optional)
    elif p.kind == "labels":
        made = QgsProcessingParameterMapLayer(p.name, p.label, None, optional,
                                              [QgsProcessing.SourceType.TypeRaster, VECTOR])
    elif p.kind == "file":
        made = QgsProcessingParameterFile(p.name, p.label, QgsProcessingParameterFile.Behavior.File, "", None, optional,
                                          p.filter)
    elif p.kind == "raster_out":
        made = QgsProcessingParameterRasterDestination(p.name, p.label, None, optional, not optional)
    elif p.kind == "vector_out":
        made = QgsProcessingParameterVectorDestination(p.name, p.label, VECTOR, None, optional, not optional)
    elif p.kind == "file_out":
        made = QgsProcessingParameterFileDestination(p.name, p.label, p.filter, None, optional, not optional)
    elif p.kind == "flag":
        made = QgsProcessingParameterBoolean(p.name, p.label, p.default)
    elif p.kind == "choice":
        texts = ["%s: %s" % (c["name"], c["summary"]) for c in p.argument["choices"]]
        made = QgsProcessingParameterEnum(p.name, p.label, texts, False, p.default, optional)
    elif p.kind in ("integer", "number"):
        made = number(p, optional)
    elif p.kind == "type":
        made = QgsProcessingParameterEnum(p.name, p.label, PIXEL_TYPES, False, None, optional, True)
    elif p.kind == "field":
        made = QgsProcessingParameterField(p.name, p.label, None, p.labels,
                                           QgsProcessingParameterField.DataType.Any, False, optional)
    else:
        made = QgsProcessingParameterString(p.name, p.label, p.default, False, optional)
    made.setHelp(p.help)
    if p.advanced:
        made.setFlags(made.flags() | QgsProcessingParameterDefinition.Flag.FlagAdvanced)
    return made


class Algorithm(QgsProcessingAlgorithm):
    def __init__(self, tool, program):
        super().__init__()
        self.tool, self.program = tool, program
        self.values = {}  # of the run
        self.base = ""  # name of the first input layer

    def createInstance(self):
        return Algorithm(self.tool, self.program)

    def name(self):
        return self.tool.name

    def displayName(self):
        return self.tool.title

    def group(self):
        return self.tool.group

    def groupId(self):
        return self.tool.group.lower().replace(" ", "_")

    def tags(self):
        return ["hyperspectral", "hsi", "gdal_hsi_" + self.tool.name]

    def icon(self):
        return QIcon(self.svgIconPath())

    def svgIconPath(self):
        return os.path.join(os.path.dirname(__file__), "icon.svg")

    def shortDescription(self):
        return self.tool.description

    def shortHelpString(self):
        text = "<p>%s</p>" % html.escape(self.tool.description)
        for p in self.tool.parameters:
            text += "<h3>%s</h3><p>%s</p>" % (html.escape(p.label), html.escape(p.help).replace("\n", "<br>"))
        if self.tool.examples:
            text += "<h3>On the command line</h3>"
            for example in self.tool.examples:
                text += "<p>%s<br><code>%s</code></p>" % (html.escape(example["purpose"]),
                                                          html.escape(example["command"]))
        return text

    def initAlgorithm(self, configuration=None):
        for p in self.tool.parameters:
            self.addParameter(definition_of(p))
        self.addOutput(QgsProcessingOutputString(PRINTED, "What the tool printed"))

    def canExecute(self):
        if os.access(self.program, os.X_OK):
            return True, ""
        return False, "'%s' is no longer there." % self.program

    def with_numbers_of_choices(self, parameters):
        """The parameters, a choice's name ("osp") replaced by its number: scripts may say either."""
        parameters = dict(parameters)
        for p in self.tool.parameters:
            value = parameters.get(p.name)
            if p.kind == "choice" and isinstance(value, str):
                names = [c["name"] for c in p.argument["choices"]]
                if value in names:
                    parameters[p.name] = names.index(value)
        return parameters

    def checkParameterValues(self, parameters, context):
        parameters = self.with_numbers_of_choices(parameters)
        for p in self.tool.parameters:
            value = parameters.get(p.name)
            if p.words > 1 and is_given(value) and not isinstance(value, QgsProperty):
                try:
                    command.words_of(p, value)
                except command.WrongValue as error:
                    return False, str(error)
        return super().checkParameterValues(parameters, context)

    def input_path(self, p, parameters, context):
        """The path of an input layer; its open options and its layer go into the values of the options for them."""
        layer = self.parameterAsLayer(parameters, p.name, context)
        if layer is None:
            value = parameters.get(p.name)
            if not is_given(value):
                return None
            return raster_uri(str(value)).path  # the tool will say what is wrong with it
        if not self.base:
            self.base = layer.name()
        first = next((q for q in self.tool.parameters if q.kind == "labels"), None)
        layer_option = self.tool.parameter("layer") if p is first else None
        if layer_option is not None and self.values.get(layer_option.name):
            layer_option = None  # the user has named one
            source = source_of(layer, context)
        else:
            source = source_of(layer, context, one_layer=layer_option is None)
        if layer_option is not None and source.layer:
            self.values[layer_option.name] = source.layer
        if source.options:
            option = self.tool.parameter("oo") if p.argument["role"] == "source" else None
            if option is None:
                raise NotAFile(
                    "The layer '%s' is opened with open options (%s), which gdal_hsi_%s does not take for it. Make a "
                    "VRT of it with gdal_translate, and take that."
                    % (layer.name(), ", ".join(source.options), self.tool.name))
            self.values[option.name] = source.options + command.items_of(option, self.values.get(option.name) or "")
        return source.path

    def option_value(self, p, parameters, context):
        value = parameters.get(p.name)
        if isinstance(value, (list, tuple)):
            return list(value)
        if p.kind == "flag":
            return self.parameterAsBool(parameters, p.name, context)
        if not is_given(value) and p.default is None:
            return None
        if p.kind == "choice":
            return p.argument["choices"][self.parameterAsEnum(parameters, p.name, context)]["name"]
        if p.kind == "integer":
            return self.parameterAsInt(parameters, p.name, context)
        if p.kind == "number":
            return self.parameterAsDouble(parameters, p.name, context)
        if p.kind == "type":
            return self.parameterAsEnumString(parameters, p.name, context)
        if p.kind == "file":
            return self.parameterAsFile(parameters, p.name, context)
        return self.parameterAsString(parameters, p.name, context)

    def prepareAlgorithm(self, parameters, context, feedback):
        """In QGIS's main thread, where the layers live."""
        parameters = self.with_numbers_of_choices(parameters)
        self.values, self.base = {}, ""
        for p in self.tool.parameters:
            if not p.is_input and not p.is_output:
                self.values[p.name] = self.option_value(p, parameters, context)
        try:
            for p in self.tool.parameters:
                if p.is_input:
                    self.values[p.name] = self.input_path(p, parameters, context)
        except NotAFile as error:
            feedback.reportError(str(error), fatalError=True)
            return False
        return True

    def output_path(self, p, parameters, context):
        if p.kind == "file_out":
            return self.parameterAsFileOutput(parameters, p.name, context)
        return self.parameterAsOutputLayer(parameters, p.name, context)

    def processAlgorithm(self, parameters, context, feedback):
        results = {}
        for p in self.tool.parameters:
            if p.is_output and is_given(parameters.get(p.name)):
                path = self.output_path(p, parameters, context)
                if path:
                    results[p.name] = self.values[p.name] = path
        try:
            words = command.arguments_of(self.tool, self.values)
        except command.WrongValue as error:
            raise QgsProcessingException(str(error)) from None
        feedback.pushCommandInfo(" ".join(map(shlex.quote, ["gdal_hsi_" + self.tool.name, *words])))
        finished = self.start([self.program, self.tool.name, *words], feedback)
        if finished.code != 0:
            if finished.canceled:
                raise QgsProcessingException("Canceled: nothing was written.")
            raise QgsProcessingException(process.failure_text(finished, self.tool.name))
        for line in finished.errors:
            feedback.pushWarning(line)
        feedback.setProgress(100)
        results = self.made(results, context)
        self.dress(results, context)
        results[PRINTED] = finished.printed
        return results

    def start(self, words, feedback):
        try:
            return process.run(words, feedback)
        except OSError as error:
            raise QgsProcessingException("'%s' does not start: %s." % (words[0], error.strerror or error)) from None

    def made(self, results, context):
        """Without the outputs that a dry run has not made."""
        dry = self.tool.parameter("dry_run")
        if dry is None or not self.values.get(dry.name):
            return results
        waiting = context.layersToLoadOnCompletion()
        context.setLayersToLoadOnCompletion(
            {path: details for path, details in waiting.items() if path not in results.values()})
        return {name: path for name, path in results.items() if os.path.exists(path) and self.is_record(name)}

    def is_record(self, name):
        """Of the run, which a dry run writes, too."""
        return self.tool.parameter(name).argument["shared"] and self.tool.parameter(name).kind == "file_out"

    def dress(self, results, context):
        """Names the layers that QGIS will load, and colours them."""
        for name, path in results.items():
            p = self.tool.parameter(name)
            if p.kind == "file_out" or not context.willLoadLayerOnCompletion(path):
                continue
            details = context.layerToLoadOnCompletionDetails(path)
            details.name = self.layer_name(p, path)
            look = styles.look_of(path, further=p.argument["role"] == "output") if p.kind == "raster_out" else None
            if look:
                details.setPostProcessor(styles.Dresser.make(look))

    def layer_name(self, p, path):
        """A file that the user has named keeps its name; a temporary one is called after what it was made from."""
        if not path.startswith(QgsProcessingUtils.tempFolder()):
            return os.path.splitext(os.path.basename(path))[0]
        words = [self.base, self.tool.short_name, "" if p.argument["required"] else p.argument["name"]]
        return " ".join(word for word in words if word)
