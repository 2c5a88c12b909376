// SPDX-License-Identifier: MIT
#include "raster/metadata/esri_header.h"

#include "core/error.h"
#include "raster/metadata/envi_header.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/regular_file.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace hsi::raster {
namespace {

bool is_esri(GDALDataset& dataset) {
    return dataset.GetDriver() != nullptr && EQUAL(dataset.GetDriver()->GetDescription(), "EHdr");
}

std::string header_text(GDALDataset& dataset) {
    constexpr size_t longest = size_t{1} << 20;
    const CPLStringList files(dataset.GetFileList());
    for (int i = 0; i < files.size(); ++i)
        if (EQUAL(CPLGetExtension(files[i]), "hdr") || EQUAL(CPLGetExtension(files[i]), "sch"))
            return beginning_of_file(files[i], longest);
    return {};
}

class EsriHeader {
  public:
    explicit EsriHeader(const std::string& file) {
        constexpr int lines_of_gdal = 50;
        const CPLStringList lines(CSLTokenizeString2(file.c_str(), "\n", CSLT_ALLOWEMPTYTOKENS));
        for (int i = 0; i < lines.size(); ++i) {
            const CPLStringList words(CSLTokenizeString2(lines[i], " \t\r", CSLT_HONOURSTRINGS));
            if (words.size() < 2) continue;
            const std::string key = upper(words[0]);
            m_values[key] = words[1];
            if (i >= lines_of_gdal) m_late.insert(key);
        }
    }

    std::string text(const char* key) const {
        const auto at = m_values.find(key);
        return at == m_values.end() ? std::string() : at->second;
    }
    /// Returns "KEY = value" for messages.
    std::string entry(const char* key) const { return std::string(key) + " = " + text(key); }
    int64_t number(const char* key, int64_t otherwise) const {
        const std::string value = text(key);
        return value.empty() ? otherwise : CPLAtoGIntBig(value.c_str());
    }
    bool is_late(const char* key) const { return m_late.count(key) > 0; }

  private:
    std::map<std::string, std::string> m_values;
    std::set<std::string> m_late; ///< keys after line 50, which the driver does not read
};

/// A header key that states gaps, which the driver does not support: the key, its value in the header, and
/// the value of a file without gaps. `key` is null if there are no gaps.
struct Gap {
    const char* key = nullptr;
    int64_t packed = 0;
};

Gap gap_in(const EsriHeader& header, const std::string& layout, int64_t row, int64_t bands) {
    const auto differs = [&](const char* key, int64_t packed) {
        return header.number(key, packed) != packed;
    };
    const int64_t total = layout == "BSQ" ? row : row * bands;
    if (layout == "BIL" && differs("BANDROWBYTES", row)) return {"BANDROWBYTES", row};
    if (differs("TOTALROWBYTES", total)) return {"TOTALROWBYTES", total};
    if (layout == "BSQ" && differs("BANDGAPBYTES", 0)) return {"BANDGAPBYTES", 0};
    return {};
}

/// The layout that the header describes, and the parts of it that the driver ignores.
struct Layout {
    EsriHeader header;
    std::string name; ///< BIL, BIP, BSQ or an unknown layout
    /// Samples have less than 8 bits; the driver then reads the gaps as the header states them.
    bool part_of_byte = false;
    bool several_bytes = false;
    Gap gap;
    bool packed = false; ///< the file has exactly the size of the samples without gaps

    Layout(GDALDataset& dataset, const std::string& text) : header(text), name(upper(header.text("LAYOUT"))) {
        if (name.empty()) name = "BIL";
        GDALRasterBand& band = *dataset.GetRasterBand(1);
        const int64_t bytes = GDALGetDataTypeSizeBytes(band.GetRasterDataType());
        part_of_byte = band.GetMetadataItem("NBITS", "IMAGE_STRUCTURE") != nullptr;
        several_bytes = bytes > 1;
        if (part_of_byte) return;
        const int64_t bands = dataset.GetRasterCount(), row = dataset.GetRasterXSize() * bytes,
                      all = row * bands * dataset.GetRasterYSize() + header.number("SKIPBYTES", 0);
        VSIStatBufL status;
        packed =
            VSIStatL(dataset.GetDescription(), &status) == 0 && static_cast<int64_t>(status.st_size) == all;
        gap = gap_in(header, name, row, bands);
    }
};

std::vector<std::string> wavelengths_in(const std::string& text) {
    std::vector<std::string> out;
    const CPLStringList words(CSLTokenizeString2(text.c_str(), " \t\r\n,", 0));
    int at = words.FindString("WAVELENGTHS");
    for (; at >= 0 && ++at < words.size() && envi_number(words[at]);)
        out.emplace_back(words[at]);
    return out;
}

void check_layout(const Layout& layout, GDALDataset& dataset) {
    const std::string name = std::string("cannot read '") + dataset.GetDescription() + "': its header has ";
    for (const char* key :
         {"NBANDS", "NBITS", "PIXELTYPE", "LAYOUT", "SKIPBYTES", "BYTEORDER", "NODATA", "NODATA_VALUE",
          "ULXMAP", "ULYMAP", "XDIM", "YDIM", "XLLCORNER", "YLLCORNER", "CELLSIZE"})
        if (layout.header.is_late(key))
            throw Error(name + layout.header.entry(key) + " after line 50, which GDAL does not read",
                        "Move this line to the beginning of the header.");
    if (layout.name != "BIL" && layout.name != "BIP" && layout.name != "BSQ")
        throw Error(name + layout.header.entry("LAYOUT") + ", which is invalid", "Write BIL, BIP or BSQ.");
    if (layout.part_of_byte && dataset.GetRasterCount() > 1 && layout.name != "BIL")
        throw Error(name + layout.header.entry("NBITS") + " and " + layout.header.entry("LAYOUT") +
                        ", which GDAL's driver EHdr reads as BIL",
                    "Convert the file to BIL, or to samples of whole bytes.");
    if (layout.gap.key != nullptr && !layout.packed)
        throw Error(name + layout.header.entry(layout.gap.key) + " (" + std::to_string(layout.gap.packed) +
                        " without gaps), but GDAL's driver EHdr cannot read gaps between rows or bands",
                    "Describe the file with a VRT of raw bands (VRTRawRasterBand).");
}

std::vector<std::string> notes_of(const Layout& layout) {
    std::vector<std::string> notes;
    const std::string name = "its header has ";
    if (layout.several_bytes && layout.header.text("BYTEORDER").empty())
        notes.push_back(name + "no BYTEORDER: most significant byte first is assumed");
    if (layout.gap.key != nullptr && layout.packed)
        notes.push_back(name + layout.header.entry(layout.gap.key) +
                        ", which is ignored: the file has no room for gaps");
    return notes;
}

} // namespace

EsriFacts read_esri_header(GDALDataset& dataset) {
    if (!is_esri(dataset)) return {};
    const std::string text = header_text(dataset);
    const Layout layout(dataset, text);
    check_layout(layout, dataset);
    std::string units;
    for (const char* key : {"WAVELENGTH_UNITS", "WAVELENGTH_UNIT", "WAVELENGTHUNITS"})
        if (units.empty()) units = layout.header.text(key);
    return {wavelengths_in(text), units, notes_of(layout)};
}

} // namespace hsi::raster
