# SPDX-License-Identifier: MIT
"""The tools of gdal-hsi as algorithms of QGIS Processing. QGIS enters here."""


def classFactory(iface):  # noqa: N802, QGIS's name
    from .plugin import Plugin
    return Plugin(iface)
