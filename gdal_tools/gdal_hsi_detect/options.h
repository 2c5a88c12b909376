// SPDX-License-Identifier: MIT
// The options of gdal_hsi_detect that several of them decide on together.
#pragma once

#include "gdal_hsi_detect/settings.h"
#include "tool/definition.h"

namespace hsi::detect_tool {

void check_settings(const tool::Call& call, Settings& s, const tool::CommonOptions& options);

/// What belongs to -method sff.
void declare_features(tool::Builder& args, Settings& s);

/// What belongs to -method mtmf.
void declare_mixtures(tool::Builder& args, Settings& s);

} // namespace hsi::detect_tool
