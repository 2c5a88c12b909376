// SPDX-License-Identifier: MIT
#include "raster/source_checks.h"

#include "core/error.h"
#include "core/names.h"
#include "raster/envi_header.h"
#include "raster/hdf5_references.h"
#include "raster/locations.h"
#include "raster/metadata_items.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>

#include <cmath>
#include <string>
#include <utility>

namespace hsi::raster {

namespace {

/// "data ignore value = none": GDAL takes it for 0, and pixels that are 0 would vanish.
void leave_out_word_for_nodata(SourceState& s) {
    const std::string* const text = s.scene.envi.find("data ignore value");
    if (text == nullptr) return;
    char* end = nullptr;
    CPLStrtod(text->c_str(), &end);
    if (end != text->c_str() && *end == '\0') return;
    for (BandMetadata& b : s.scene.bands)
        b.nodata.reset();
    s.notes.push_back(s.name() + ": data ignore value = " + *text + " is no number, and is left out");
}

bool is_signed_byte(GDALDataset& dataset, int band) {
    const char* const kind = dataset.GetRasterBand(band)->GetMetadataItem("PIXELTYPE", "IMAGE_STRUCTURE");
    return kind != nullptr && EQUAL(kind, "SIGNEDBYTE") &&
           dataset.GetRasterBand(band)->GetRasterDataType() == GDT_Byte;
}

} // namespace

void check_envi_header(SourceState& s) {
    const EnviHeader& header = s.scene.envi;
    if (s.scene.driver != "ENVI" || header.fields().empty()) return;
    const bool several = s.scene.file_bands > 1,
               wide = GDALGetDataTypeSizeBytes(s.scene.bands.front().type) > 1;
    std::string missing;
    for (const auto& [key, needed] : {std::pair{"samples", true},
                                      {"lines", true},
                                      {"bands", true},
                                      {"data type", true},
                                      {"interleave", several},
                                      {"byte order", wide}}) {
        if (needed && header.find(key) == nullptr)
            missing += (missing.empty() ? "'" : ", '") + std::string(key) + "'";
    }
    const std::string advice = "The header was cut short, or written by hand: complete it.";
    if (const std::string* word = header.find("interleave");
        several && word != nullptr && !equal_names(*word, "bsq") && !equal_names(*word, "bil") &&
        !equal_names(*word, "bip"))
        throw Error("the ENVI header of " + s.name() + " has interleave = " + *word + ", which is none",
                    "Write bsq, bil or bip.");
    if (!missing.empty()) throw Error("the ENVI header of " + s.name() + " does not tell " + missing, advice);
    if (const std::string* order = header.find("byte order"); wide && *order != "0" && *order != "1")
        throw Error("the ENVI header of " + s.name() + " has byte order = " + *order + ", which is none",
                    "Write 0 where the least significant byte comes first, or 1.");
    leave_out_word_for_nodata(s);
    for (const EnviField& field : header.fields())
        if (field.value.rfind('{', 0) == 0 && field.value.find('}') == std::string::npos)
            throw Error("the ENVI header of " + s.name() + " ends within '" + field.key + "'", advice);
}

void check_types(SourceState& s, GDALDataset* dataset) {
    for (const BandMetadata& b : s.scene.bands) {
        if (dataset != nullptr && is_signed_byte(*dataset, b.file_band))
            throw Error(
                "band " + std::to_string(b.file_band) + " of " + s.name() +
                    " has signed bytes, which this GDAL reads as 0 to 255",
                "gdal_calc.py -A FILE --allBands A --calc A --type Int16 --outfile NEW makes a file with "
                "their values; GDAL 3.7 and newer have a type for them.");
        if (GDALDataTypeIsComplex(b.type))
            throw Error("band " + std::to_string(b.file_band) + " of " + s.name() + " is complex (" +
                            GDALGetDataTypeName(b.type) + "); real values are needed",
                        "gdal_translate -ot Float32 keeps the real part.");
        if (!convertible(b.type))
            throw Error("band " + std::to_string(b.file_band) + " of " + s.name() + " has the type " +
                        GDALGetDataTypeName(b.type) + ", which is not supported");
        s.type = s.type == GDT_Unknown ? b.type : GDALDataTypeUnion(s.type, b.type);
    }
}

void check_values_are_there(GDALDataset& dataset) {
    const std::string driver = dataset.GetDriver() ? dataset.GetDriver()->GetDescription() : "",
                      name = dataset.GetDescription();
    for (const char* reads_hdf5 : {"HDF5Image", "HDF5", "netCDF", "BAG", "KEA", "S102", "S104", "S111"}) {
        if (driver != reads_hdf5) continue;
        // HDF5:"a.h5"://group/cube, NETCDF:"a.nc":/group/cube; a file's name alone stands for all of it.
        std::vector<std::string> objects;
        const size_t colon = name.rfind(':');
        if (colon != std::string::npos && colon + 1 < name.size() && name[colon - 1] == '"')
            objects.push_back(name.substr(colon + 1));
        const CPLStringList files(dataset.GetFileList());
        for (int i = 0; i < files.size(); ++i)
            check_hdf5_sources(files[i], objects);
    }
}

void note_lost_locations(SourceState& s) {
    VSIStatBufL info;
    const std::string product = product_of_locations(s.scene);
    if (!product.empty() && VSIStatExL(product.c_str(), &info, VSI_STAT_EXISTS_FLAG) != 0)
        s.notes.push_back(s.name() + " was made from '" + product +
                          "', which is not there: its pixels have no longitude and latitude");
}

} // namespace hsi::raster
