// SPDX-License-Identifier: MIT
// What a scene that computes (.hsi) may name. Documents come from strangers: opening one must not wait for a
// pipe, ask a server or go round in a circle. docs/trust.md states the rule for users.
#pragma once

#include <string>

class GDALDataset;

namespace hsi::raster {

struct SceneDocument;

/// The configuration option by which a caller lets documents name servers.
inline constexpr const char* servers_option = "GDAL_HSI_SERVERS";

/// Checks all names in a document, which is called `name`: files and folders of this machine, and servers
/// where servers_option is YES. Texts that name further files (VRTs, .aux.xml) are followed. Throws Error
/// naming the document and what is wrong. Nothing is opened by GDAL's drivers.
void check_document_names(const SceneDocument& document, const std::string& name);

/// Checks what GDAL and PROJ would open when they use a dataset that the document `document` names: its
/// overviews in another file, the arrays of its geolocation and the files of its coordinate reference system,
/// wherever the format keeps them. Throws Error as check_document_names() does.
void check_dataset_names(GDALDataset& dataset, const std::string& document);

/// Checks that SceneDocument::raster is the text of a VRT that describes a raster and has no pixels: no
/// sources, no further bands, no functions. \return what is wrong; empty: nothing.
std::string fault_of_description(const std::string& text);

} // namespace hsi::raster
