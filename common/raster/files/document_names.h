// SPDX-License-Identifier: MIT
// The names that a virtual scene (.hsi) may contain. Documents may be from untrusted sources. Opening a
// document must therefore not wait for a pipe, send a request to a server, or follow a cycle of files.
// docs/trust.md states the rule for users.
#pragma once

#include <string>

class GDALDataset;

namespace hsi::raster {

struct SceneDocument;

/// The configuration option that allows documents to name servers.
inline constexpr const char* servers_option = "GDAL_HSI_SERVERS";

/// Checks all file names in `document`, whose path is `name`, and the names in texts to which it refers
/// (VRTs, .aux.xml). Allowed are local files and folders, and names on servers if servers_option is YES.
/// Throws Error with the document and the fault. No driver of GDAL opens a file for these checks.
void check_document_names(const SceneDocument& document, const std::string& name);

/// Checks the files that GDAL and PROJ would open when they use `dataset`, which the document at the path
/// `document` names. These are overviews in another file, the arrays of its geolocation, and files that its
/// coordinate reference system names. Applies to datasets of any format. Throws Error as
/// check_document_names() does.
void check_dataset_names(GDALDataset& dataset, const std::string& document);

/// Checks that SceneDocument::raster is the text of a VRT that describes a raster without pixels: without
/// sources, bands of special types or functions. \return the fault; empty if the text is valid.
std::string fault_of_description(const std::string& text);

} // namespace hsi::raster
