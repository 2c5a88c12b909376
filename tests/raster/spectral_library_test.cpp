// SPDX-License-Identifier: MIT
#include "raster/library_output.h"

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

std::vector<std::string> names_of(const std::string& table) {
    const std::string path = "/vsimem/names_test.csv";
    VSIFCloseL(VSIFileFromMemBuffer(path.c_str(), reinterpret_cast<GByte*>(const_cast<char*>(table.data())),
                                    table.size(), FALSE));
    const auto library = read_spectral_library(path);
    VSIUnlink(path.c_str());
    return library.names;
}

TEST(SpectralLibrary, NamesKeepTheirQuotationMarksAndBlanks) {
    SpectralLibrary library;
    library.names = {"\"oak\"", "5\" pipe", "\"", "\"\"", "a \"b\", c", " edged ", "tab\t", "", "\\\"x"};
    library.spectra.resize(library.names.size(), {1, 2});
    const std::string path = "/vsimem/quotes_test.csv";
    write_spectral_library({"-spectra", path, true, nullptr}, library, "");
    EXPECT_EQ(read_spectral_library(path).names, library.names);
    VSIUnlink(path.c_str());
    using Names = std::vector<std::string>;
    EXPECT_EQ(names_of("band, \"a, b\" , c d \t,\"e\"\n1,2,3,4\n"), (Names{"a, b", "c d", "e"}));
    EXPECT_EQ(names_of("5\" pipe,x \"y\"\r\n1, 2\r\n"), (Names{"5\" pipe", "x \"y\""}));
    EXPECT_EQ(names_of("a,\n1,2\n"), (Names{"a", ""}));
    EXPECT_EQ(names_of("a,\"open\n1,2\n"), (Names{"a", "open"}));
}

TEST(SpectralLibrary, DeviationsAreNamedAfterTheirMeans) {
    using Found = std::set<size_t>;
    EXPECT_EQ(deviations_in({"corn", "corn deviation", "deviation", "soil"}), Found{1});
    EXPECT_EQ(deviations_in({"corn deviation", "soil"}), Found{}); // the spectrum of the deviation is missing
    EXPECT_EQ(deviations_in({"a b", "a b deviation", "a b (2)", "a b deviation (2)"}), (Found{1, 3}));
    EXPECT_EQ(deviations_in({"x", "x deviation", "x deviation deviation"}), (Found{1, 2}));
}

} // namespace
} // namespace hsi::raster
