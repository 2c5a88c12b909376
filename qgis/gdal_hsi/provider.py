# SPDX-License-Identifier: MIT
"""The provider: finds the executables and has one algorithm for each of their tools."""

import os

from processing.core.ProcessingConfig import ProcessingConfig, Setting
from qgis.core import Qgis, QgsApplication, QgsMessageLog, QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from .algorithm import Algorithm
from .executables import NotUsable, find, usage_of
from .schema import tools_of

FOLDER = "GDAL_HSI_FOLDER"


class Provider(QgsProcessingProvider):
    def __init__(self):
        super().__init__()
        self.problem = ""
        self.version = ""

    def id(self):
        return "gdal_hsi"

    def name(self):
        return "GDAL-HSI"

    def longName(self):
        return "GDAL-HSI (%s)" % self.version if self.version else self.name()

    def versionInfo(self):
        return self.version

    def icon(self):
        return QIcon(os.path.join(os.path.dirname(__file__), "icon.svg"))

    def svgIconPath(self):
        return os.path.join(os.path.dirname(__file__), "icon.svg")

    def warningMessage(self):
        return self.problem

    def load(self):
        ProcessingConfig.settingIcons[self.name()] = self.icon()
        ProcessingConfig.addSetting(Setting(
            self.name(), FOLDER, "Folder of the executable gdal_hsi (empty: PATH is searched)", "",
            valuetype=Setting.FOLDER))
        ProcessingConfig.readSettings()
        self.refreshAlgorithms()
        return True

    def unload(self):
        ProcessingConfig.removeSetting(FOLDER)

    def loadAlgorithms(self):
        self.problem, self.version = "", ""
        try:
            program = find(ProcessingConfig.getSetting(FOLDER) or "")
            usage = usage_of(program, os.path.join(QgsApplication.qgisSettingsDirPath(), "gdal_hsi", "usage.json"))
            tools = tools_of(usage)
        except NotUsable as error:
            self.problem = str(error)
        except (KeyError, TypeError, ValueError, OSError) as error:
            self.problem = "What gdal_hsi says of its tools cannot be understood (%s: %s)." % (
                type(error).__name__, error)
        if self.problem:
            QgsMessageLog.logMessage(self.problem, self.name(), Qgis.MessageLevel.Warning)
            return
        self.version = usage.get("version", "")
        for tool in tools.values():
            self.addAlgorithm(Algorithm(tool, program))

    def isSupportedOutputValue(self, value, parameter, context):
        """The tool knows which formats it writes, and refuses others in its own words."""
        return True, ""

    def supportsNonFileBasedOutput(self):
        return False
