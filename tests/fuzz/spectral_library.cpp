// SPDX-License-Identifier: MIT
// Spectral libraries. The first byte selects the kind of file: a table, an ENVI library (header and data,
// separated by a zero byte), a text of any format, or a binary file of a spectrometer.
#include "core/text.h"
#include "fuzz/fuzz.h"
#include "raster/libraries/library_formats.h"
#include "raster/libraries/table_axis.h"
#include "raster/library_output.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

using namespace hsi;

bool alike(double a, double b, double tolerance) {
    return (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= tolerance * std::fabs(a);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet_gdal();
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    const size_t zero = std::min(text.find('\0'), text.size());
    const char* const names[] = {"/vsimem/in.csv", "/vsimem/in.sli", "/vsimem/in.txt", "/vsimem/in.asd"};
    const size_t kind = data[0] % 4;
    // GDAL would read these texts.
    if (raster::holds_features(utf8_text(text)) || text.rfind("SQLite", 0) == 0) return 0;
    const fuzz::MemoryFile file(names[kind], kind != 1            ? text
                                             : zero < text.size() ? text.substr(zero + 1)
                                                                  : std::string());
    const fuzz::MemoryFile header("/vsimem/in.hdr", text.substr(0, zero));
    if (kind == 0) {
        try {
            const auto table = raster::read_spectrum_table(file.path(), {"name"}, {"from_nm", "class"});
            for (const auto& row : table.rows)
                fuzz::expect(row.size() == 3, "a table about spectra has the cells that were asked for");
        } catch (const Error&) {
        }
    }
    try {
        const auto library = raster::read_spectral_library(file.path());
        fuzz::expect(library.names.size() == library.spectra.size(), "a name a spectrum");
        for (const auto& spectrum : library.spectra)
            fuzz::expect(spectrum.size() == library.bands(), "spectra are of one length");
        fuzz::expect(library.wavelengths_nm.empty() || library.wavelengths_nm.size() == library.bands(),
                     "a wavelength a band");
        fuzz::expect(library.fwhm_nm.empty() || library.fwhm_nm.size() == library.bands(), "a width a band");
        fuzz::expect(library.band_numbers.empty() || library.band_numbers.size() == library.bands(),
                     "a number a band");
        const auto at = raster::resampled(library, {400, 500.5, NAN});
        fuzz::expect(at.bands() == 3 || library.wavelengths_nm.empty() || library.spectra.empty(),
                     "resampled to three bands");
        if (library.bands() == 0) return 0;
        const auto chosen =
            raster::chosen_names(library.names, {"*", "#1", library.names.back()}, "-spectrum");
        const bool name = std::any_of(library.names.begin(), library.names.end(), [](const auto& spectrum) {
            // A name with '*' is found as a name, not as a pattern.
            return spectrum.find('*') != std::string::npos;
        });
        fuzz::expect(name || raster::selected(library, chosen).spectra.size() == library.spectra.size(),
                     "* takes all");
        // Names are free text, so names that the format cannot store may change. Values must be restored.
        // Exceptions are libraries in which the name of a spectrum contains a unit of wavelengths, because
        // the column of this spectrum may be read as wavelengths.
        if (std::any_of(library.names.begin(), library.names.end(),
                        [](const auto& spectrum) { return !raster::stated_unit(spectrum).empty(); }))
            return 0;
        const std::string out = "/vsimem/out.csv";
        raster::write_spectral_library({"-spectra", out, true, nullptr}, library, "");
        const auto back = raster::read_spectral_library(out);
        VSIUnlink(out.c_str());
        fuzz::expect(back.spectra.size() == library.spectra.size() && back.bands() == library.bands(),
                     "a library that is written has its size when it is read");
        // Rows are written in the order of band numbers if wavelengths are unknown.
        std::vector<size_t> order(library.bands());
        std::iota(order.begin(), order.end(), size_t{0});
        if (library.wavelengths_nm.empty() && !library.band_numbers.empty())
            std::sort(order.begin(), order.end(),
                      [&](size_t a, size_t b) { return library.band_numbers[a] < library.band_numbers[b]; });
        for (size_t k = 0; k < library.spectra.size(); ++k)
            for (size_t b = 0; b < library.bands(); ++b)
                fuzz::expect(alike(library.spectra[k][order[b]], back.spectra[k][b], 1e-5),
                             "a value comes back");
    } catch (const Error&) {
    }
    return 0;
}
