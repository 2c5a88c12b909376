# SPDX-License-Identifier: MIT
"""The plugin: it only brings the provider."""

from qgis.core import Qgis, QgsApplication

from .provider import Provider


class Plugin:
    def __init__(self, iface):
        self.iface = iface
        self.provider = None

    def initProcessing(self):  # noqa: N802, QGIS's name; qgis_process calls this alone
        self.provider = Provider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self):  # noqa: N802, QGIS's name
        self.initProcessing()
        if self.iface and self.provider.problem:
            self.iface.messageBar().pushMessage("GDAL-HSI", self.provider.problem, Qgis.MessageLevel.Warning, 15)

    def unload(self):
        if self.provider:
            QgsApplication.processingRegistry().removeProvider(self.provider)
            self.provider = None
