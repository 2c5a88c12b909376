// SPDX-License-Identifier: MIT
#include "raster/spectral_library.h"

#include <gtest/gtest.h>

#include <cpl_vsi.h>

namespace hsi::raster {
namespace {

TEST(SpectralLibrary, SpectraMayBeCalledAsTheColumnsBesideThem) {
    SpectralLibrary library;
    library.names = {"bAnd", "Wavelength 2", "two\nlines", "a, b"};
    library.spectra = {{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.6}, {0.7, 0.8}};
    library.wavelengths_nm = {400, 500};
    const std::string path = "/vsimem/library_test.csv";
    write_spectral_library({"-spectra", path, true, nullptr}, library, "");
    const auto back = read_spectral_library(path);
    VSIUnlink(path.c_str());
    EXPECT_EQ(back.names, (std::vector<std::string>{"bAnd", "Wavelength 2", "two lines", "a, b"}));
    EXPECT_EQ(back.spectra, library.spectra);
    EXPECT_EQ(back.wavelengths_nm, library.wavelengths_nm);
}

} // namespace
} // namespace hsi::raster
