// SPDX-License-Identifier: MIT
// The names that a virtual scene (.hsi) may contain. Documents may be from untrusted sources. Opening a
// document must not wait for a pipe, send a request to a server or follow a cycle of files. docs/trust.md
// states the rule for users.
#pragma once

#include <string>

class GDALDataset;

namespace hsi::raster {

struct SceneDocument;

/// The configuration option that allows documents to name servers.
inline constexpr const char* servers_option = "GDAL_HSI_SERVERS";

/// Checks all names in the document `name`: local files and folders, and servers if servers_option is YES.
/// Also checks texts that name further files (VRTs, .aux.xml). Throws Error with the document and the fault.
/// No driver of GDAL opens any file for the checks.
void check_document_names(const SceneDocument& document, const std::string& name);

/// Checks the files that GDAL and PROJ would open when they use a dataset that the document `document` names:
/// overviews in another file, the arrays of its geolocation and the files of its coordinate reference system.
/// Applies to datasets of any format. Throws Error as check_document_names() does.
void check_dataset_names(GDALDataset& dataset, const std::string& document);

/// Checks that SceneDocument::raster is the text of a VRT that describes a raster without pixels: without
/// sources, bands of special types or functions. \return the fault; empty if the text is valid.
std::string fault_of_description(const std::string& text);

} // namespace hsi::raster
