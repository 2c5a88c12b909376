#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Does one job in a QGIS without a screen, and prints the result as JSON: session.py PLUGINS JOB.

A job has an algorithm and its parameters, and optionally
  layers         name -> {"path": FILE, "provider": gdal|ogr, "subset": FILTER} or {"wkt": [[WKT, CLASS], ..]}, a layer
                 in QGIS's memory with the field landcover; the value "layer:NAME" of a parameter refers to it
  folder         the provider's setting
  cancel_after   seconds
  picture        PNG of the loaded layers; or pictures, a folder with one PNG per layer
  form           PNG of the algorithm's form
  gui            true: the plugin starts as in QGIS's window; messages above the map are in the answer
"""
import json
import os
import sys
import time

PLUGINS, JOB = sys.argv[1], json.loads(sys.argv[2])
sys.path[:0] = [PLUGINS]

from qgis.core import (  # noqa: E402
    QgsApplication, QgsFeature, QgsGeometry, QgsMapRendererParallelJob, QgsMapSettings, QgsProcessingContext,
    QgsProcessingException, QgsProcessingFeedback, QgsProject, QgsRasterLayer, QgsVectorLayer)
from qgis.PyQt.QtCore import QSize  # noqa: E402
from qgis.PyQt.QtGui import QColor  # noqa: E402


class Window:
    """The parts of QGIS's window that the plugin uses."""

    def __init__(self):
        self.messages = []

    def messageBar(self):
        return self

    def pushMessage(self, title, text, level, seconds):
        self.messages.append([title, text])


class Feedback(QgsProcessingFeedback):
    """Records all messages; cancels a given time after the first progress."""

    def __init__(self, cancel_after):
        super().__init__(False)
        self.said = {"info": [], "console": [], "command": [], "warning": [], "error": []}
        self.percents, self.cancel_after, self.first = [], cancel_after, None
        self.progressChanged.connect(self.percents.append)

    def isCanceled(self):
        if self.cancel_after is None:
            return super().isCanceled()
        self.first = self.first or time.monotonic()
        return time.monotonic() > self.first + self.cancel_after

    def pushInfo(self, text):
        self.said["info"].append(text)

    def pushConsoleInfo(self, text):
        self.said["console"].append(text)

    def pushCommandInfo(self, text):
        self.said["command"].append(text)

    def pushWarning(self, text):
        self.said["warning"].append(text)

    def reportError(self, text, fatalError=False):
        self.said["error"].append(text)


def make_layer(name, facts):
    if "wkt" in facts:
        layer = QgsVectorLayer("Polygon?crs=EPSG:32633&field=landcover:string", name, "memory")
        for wkt, landcover in facts["wkt"]:
            feature = QgsFeature(layer.fields())
            feature.setGeometry(QgsGeometry.fromWkt(wkt))
            feature.setAttribute("landcover", landcover)
            layer.dataProvider().addFeature(feature)
        return layer
    if facts["provider"] == "ogr":
        layer = QgsVectorLayer(facts["path"], name, "ogr")
        layer.setSubsetString(facts.get("subset", ""))
        return layer
    return QgsRasterLayer(facts["path"], name, facts["provider"])


def render(layers, path, width=480):
    settings = QgsMapSettings()
    settings.setLayers(layers)
    settings.setDestinationCrs(layers[0].crs())
    settings.setBackgroundColor(QColor(255, 255, 255))
    extent = layers[0].extent()
    settings.setOutputSize(QSize(width, max(64, int(width * extent.height() / max(extent.width(), 1e-9)))))
    settings.setExtent(extent)
    job = QgsMapRendererParallelJob(settings)
    job.start()
    job.waitForFinished()
    job.renderedImage().save(path)


def facts_of(layer):
    facts = {"name": layer.name(), "valid": layer.isValid(), "source": layer.source(), "type": int(layer.type())}
    if isinstance(layer, QgsRasterLayer):
        renderer = layer.renderer()
        facts.update(renderer=renderer.type(), bands=renderer.usesBands(), legend=[
            [name, colour.name()] for name, colour in layer.legendSymbologyItems()])
        if renderer.type() == "singlebandpseudocolor":
            facts["limits"] = [renderer.classificationMin(), renderer.classificationMax()]
    else:
        facts["features"] = layer.featureCount()
    return facts


def parameter_facts(algorithm):
    return {p.name(): {"type": p.type(), "label": p.description(), "help": p.help(), "default": p.defaultValue(),
                       "advanced": bool(p.flags() & p.FlagAdvanced), "optional": bool(p.flags() & p.FlagOptional),
                       "options": p.options() if p.type() == "enum" else None,
                       "range": [p.minimum(), p.maximum()] if p.type() == "number" else None}
            for p in algorithm.parameterDefinitions()}


def run(algorithm, answer):
    context = QgsProcessingContext()
    context.setProject(QgsProject.instance())
    feedback = Feedback(JOB.get("cancel_after"))
    kept = {name: make_layer(name, facts) for name, facts in JOB.get("layers", {}).items()}
    QgsProject.instance().addMapLayers(list(kept.values()))
    parameters = {name: kept[value[6:]] if isinstance(value, str) and value.startswith("layer:") else value
                  for name, value in JOB["parameters"].items()}
    import processing
    before, start = set(QgsProject.instance().mapLayers()), time.monotonic()
    try:
        results = processing.runAndLoadResults(algorithm.id(), parameters, context=context, feedback=feedback)
        answer["results"] = {name: value if isinstance(value, (str, int, float)) else str(value)
                             for name, value in results.items()}
    except QgsProcessingException as error:
        answer["exception"] = str(error)
    answer.update(seconds=time.monotonic() - start, said=feedback.said, percents=feedback.percents)
    new = [layer for key, layer in QgsProject.instance().mapLayers().items() if key not in before]
    answer["layers"] = [facts_of(layer) for layer in new]
    if JOB.get("picture") and new:
        render(new, JOB["picture"])
    if JOB.get("pictures"):
        for layer in new:
            render([layer], os.path.join(JOB["pictures"], layer.name().replace(" ", "_") + ".png"))


def main():
    app = QgsApplication([], bool(JOB.get("form")))
    app.initQgis()
    sys.path.append(os.path.join(QgsApplication.pkgDataPath(), "python", "plugins"))
    from processing.core.Processing import Processing
    from processing.core.ProcessingConfig import ProcessingConfig
    Processing.initialize()
    from gdal_hsi.plugin import Plugin
    window = Window() if JOB.get("gui") else None
    plugin = Plugin(window)
    if window:
        plugin.initGui()
    else:
        plugin.initProcessing()
    provider = plugin.provider
    if "folder" in JOB:
        ProcessingConfig.setSettingValue("GDAL_HSI_FOLDER", JOB["folder"])
        provider.refreshAlgorithms()
        ProcessingConfig.setSettingValue("GDAL_HSI_FOLDER", "")
    answer = {"problem": provider.problem, "warning": provider.warningMessage(), "long_name": provider.longName(),
              "algorithms": sorted(a.name() for a in provider.algorithms())}
    answer["messages"] = window.messages if window else []
    algorithm = provider.algorithm(JOB["algorithm"]) if "algorithm" in JOB else None
    if algorithm:
        answer.update(display_name=algorithm.displayName(), group=algorithm.group(), help=algorithm.shortHelpString(),
                      parameters=parameter_facts(algorithm))
    if algorithm and JOB.get("form"):
        from processing.gui.AlgorithmDialog import AlgorithmDialog
        dialog = AlgorithmDialog(algorithm.create())
        dialog.resize(1000, 900)
        dialog.grab().save(JOB["form"])
    if algorithm and "parameters" in JOB:
        run(algorithm, answer)
    plugin.unload()
    answer["left"] = QgsApplication.processingRegistry().providerById("gdal_hsi") is not None
    print("\nQGIS " + json.dumps(answer, default=str), flush=True)
    os._exit(0)  # QGIS's own teardown is slow and may crash without a screen


if __name__ == "__main__":
    main()
