// SPDX-License-Identifier: MIT
#include "raster/raster_source.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "core/host_memory.h"
#include "core/process_limits.h"
#include "core/text.h"
#include "raster/drivers.h"
#include "raster/files/document_names.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/hdf5/hdf5_chunks.h"
#include "raster/hdf5/hdf5_references.h"
#include "raster/hdf5/netcdf_classic.h"
#include "raster/io/block_store.h"
#include "raster/libraries/text_table.h"
#include "raster/metadata/envi_file.h"
#include "raster/metadata/planetary_label.h"
#include "raster/metadata/scene_metadata.h"
#include "raster/metadata/spectral_metadata.h"
#include "raster/products/array_axes.h"
#include "raster/products/hdf_trial.h"
#include "raster/products/matlab_scene.h"
#include "raster/products/pipes_beside.h"
#include "raster/products/product.h"
#include "raster/regular_file.h"
#include "raster/scene/chunk_arrays.h"
#include "raster/scene/computed_scene.h"
#include "raster/scene/growing_file.h"
#include "raster/scene/locations.h"
#include "raster/scene/source_checks.h"
#include "raster/scene/source_impl.h"
#include "raster/side_files.h"
#include "raster/spectral_library.h"
#include "raster/text_input.h"
#include "raster/tiff/tiff_decoder.h"
#include "stream/value_parts.h"

#include <cpl_string.h>
#include <cpl_vsi.h>

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>

namespace hsi::raster {
namespace {

/// Throws Error for a file without raster bands, and lists its subdatasets.
[[noreturn]] void refuse_empty(GDALDataset& dataset, const std::string& name) {
    std::string advice;
    const CPLStringList items(CSLDuplicate(dataset.GetMetadata("SUBDATASETS")));
    for (int i = 1; i <= 8; ++i) {
        const char* sub = items.FetchNameValue(CPLSPrintf("SUBDATASET_%d_NAME", i));
        if (sub == nullptr) break;
        advice += (advice.empty() ? "Use one of its subdatasets: " : ", ") + without_whole_names(sub);
    }
    if (advice.empty() && may_hold_arrays(dataset.GetDescription()))
        advice = "GDAL and its HDF5 library cannot read any array in it as a scene; gdalmdiminfo lists its "
                 "arrays.";
    throw Error(name + " has no raster bands", advice);
}

/// Applies -bbl FILE.csv instead of the bad band list of the file. Bands that the table does not contain keep
/// the mark in the file.
void take_bad_bands(SourceState& s) {
    const std::string& path = s.options.bad_bands;
    if (path.empty()) return;
    const auto refuse = [&](const std::string& what) {
        throw Error("-bbl " + path + ": " + what, "Make the table with gdal_hsi_noise -bad-bands.");
    };
    const TextTable table = read_text_table(path, read_file(path, largest_file::library));
    const auto column = [&](const char* name) {
        const auto found = std::find_if(table.head.begin(), table.head.end(),
                                        [&](const std::string& head) { return equal_names(head, name); });
        if (found == table.head.end()) refuse(std::string("it has no column '") + name + "'");
        return static_cast<size_t>(found - table.head.begin());
    };
    const size_t band = column("band"), good = column("good");
    for (const auto& row : table.rows) {
        const double number = cell_number(row[band]), value = cell_number(row[good]);
        if (number != std::floor(number) || (value != 0 && value != 1))
            refuse("'" + row[band] + "', '" + row[good] + "' are not a band number and 1 or 0");
        if (!(number >= 1 && number <= s.scene.file_bands))
            refuse("band " + row[band] + " is not in " + s.name() + ", which has " +
                   counted(s.scene.file_bands, "band"));
        s.scene.bands[static_cast<size_t>(number) - 1].bbl = value != 0 ? "1" : "0";
    }
}

void choose_bands(SourceState& s) {
    const int count = s.scene.file_bands;
    if (!s.options.bands.empty()) {
        for (const int b : s.options.bands)
            if (b < 1 || b > count)
                throw UsageError("-b " + std::to_string(b) + ": " + s.name() + " has bands 1 to " +
                                 std::to_string(count));
        s.bands = s.options.bands;
        return;
    }
    if (!s.options.choices.empty()) {
        std::vector<BandAt> all;
        for (const BandMetadata& b : s.scene.bands)
            all.push_back({b.file_band, b.wavelength_nm,
                           !(s.options.use_bbl && b.bad()) && b.interpretation != GCI_AlphaBand});
        s.bands = bands_of(s.options.choices, all, s.name());
        return;
    }
    for (const BandMetadata& b : s.scene.bands) {
        // An alpha band marks valid pixels of the other bands, and does not belong to the spectrum.
        if (count > 1 && b.interpretation == GCI_AlphaBand) {
            // By default, GDAL calls the fourth of four bands of bytes an alpha band.
            if (count == 4)
                s.notes.push_back("band " + std::to_string(b.file_band) + " of " + s.name() +
                                  " is called alpha: it marks valid pixels and is not used as a band of the "
                                  "scene (-b 1-4 uses it)");
            continue;
        }
        if (s.options.use_bbl && b.bad())
            s.bad.push_back(b.file_band);
        else
            s.bands.push_back(b.file_band);
    }
    if (s.bands.empty())
        throw Error(s.options.bad_bands.empty()
                        ? "the bad-band list of " + s.name() + " marks every band as bad"
                        : "-bbl " + s.options.bad_bands + ": every band of " + s.name() + " is bad",
                    "Use -bbl ignore, or -b.");
}

/// Removes the bands of -exclude-range. Bands without a wavelength are kept.
void exclude_bands(SourceState& s) {
    if (s.options.excluded.empty()) return;
    const auto nm = [&](int band) { return s.scene.bands[static_cast<size_t>(band - 1)].wavelength_nm; };
    if (std::all_of(s.scene.bands.begin(), s.scene.bands.end(),
                    [](const BandMetadata& b) { return std::isnan(b.wavelength_nm); }))
        throw Error("-exclude-range " + s.options.excluded.front().text + ": " + s.name() +
                        " has no wavelengths",
                    "Choose bands by number with -b.");
    for (const BandChoice& range : s.options.excluded)
        if (std::none_of(s.bands.begin(), s.bands.end(),
                         [&](int b) { return range_around({range}, nm(b)) != nullptr; }))
            s.notes.push_back("-exclude-range " + range.text + ": " + s.name() +
                              " has no band in this range");
    s.bands.erase(std::remove_if(s.bands.begin(), s.bands.end(),
                                 [&](int b) { return range_around(s.options.excluded, nm(b)) != nullptr; }),
                  s.bands.end());
    if (s.bands.empty()) throw Error("-exclude-range leaves no band of " + s.name());
}

void keep_bands(SourceState& s) {
    const int count = s.scene.file_bands;
    for (const BandMetadata& b : s.scene.bands)
        if (count > 1 && b.interpretation == GCI_AlphaBand &&
            std::find(s.bands.begin(), s.bands.end(), b.file_band) == s.bands.end())
            s.masking.alpha = b.file_band;
    std::vector<BandMetadata> kept;
    for (const int b : s.bands)
        kept.push_back(s.scene.bands[static_cast<size_t>(b - 1)]);
    s.scene.bands = std::move(kept);
}

void choose_window(SourceState& s) {
    if (!s.options.window) return;
    const Rect w = *s.options.window, file = s.scene.window;
    if (w.empty() || !file.contains(w))
        throw UsageError("-srcwin " + std::to_string(w.x) + " " + std::to_string(w.y) + " " +
                         std::to_string(w.w) + " " + std::to_string(w.h) + " is not inside " + s.name() +
                         ", which has " + size_text(file.w, file.h) + " pixels");
    s.scene.window = w;
}

void find_mask(SourceState& s, GDALDataset& dataset) {
    bool same = true;
    int first = 0;
    // An alpha band that the user selects with -b is an ordinary band and not a mask.
    const bool alpha_is_a_band =
        std::any_of(s.scene.bands.begin(), s.scene.bands.end(),
                    [](const BandMetadata& b) { return b.interpretation == GCI_AlphaBand; });
    for (size_t k = 0; k < s.bands.size(); ++k) {
        const int flags = dataset.GetRasterBand(s.bands[k])->GetMaskFlags();
        // Readers compare nodata values of single bands themselves. A list of nodata values for all bands
        // (NODATA_VALUES) is a mask.
        int kind = flags & (GMF_ALL_VALID | GMF_PER_DATASET | GMF_ALPHA | GMF_NODATA);
        if ((kind & GMF_ALPHA) && alpha_is_a_band) kind = GMF_ALL_VALID;
        const bool nodata_alone = kind == GMF_NODATA, overridden = (kind & GMF_NODATA) && s.options.nodata;
        if ((kind & GMF_ALL_VALID) || nodata_alone || overridden)
            kind = 0;
        else
            kind = (flags & GMF_PER_DATASET) ? 2 : 1;
        if (k == 0) first = kind;
        same &= kind == first;
        if (kind != 0) s.masking.kind = MaskKind::band;
    }
    if (s.masking.kind == MaskKind::band && same && first == 2) s.masking.kind = MaskKind::dataset;
    // GDAL uses an alpha band as a mask only if the file has two or four bands.
    if (s.masking.kind == MaskKind::none && s.masking.alpha > 0)
        s.masking.kind = MaskKind::dataset;
    else
        s.masking.alpha = 0;
    s.scene.masked = s.masking.kind != MaskKind::none;
}

/// Adds a note about a nodata value with too few digits. If a Float32 file is converted to Float64, its
/// nodata value is often written with six digits, so that GDAL finds no equal value.
void note_short_nodata(SourceState& s) {
    for (const BandMetadata& b : s.scene.bands) {
        if (b.type != GDT_Float64 || !b.nodata) continue;
        const double value = b.nodata->as_double(),
                     limit = std::copysign(double{std::numeric_limits<float>::max()}, value);
        constexpr double near = 1e-4; // maximum relative difference: four digits agree
        const auto range = nodata_range(*b.nodata, sample_type(b.type));
        if (!(std::fabs(value - limit) < near * std::fabs(limit)) || !range || range->holds(limit)) continue;
        s.notes.push_back((s.options.nodata ? std::string("-srcnodata ") : "the nodata value ") +
                          number_text(value) + (s.options.nodata ? "" : " of " + s.name()) +
                          " has too few digits to match " + number_text(limit) +
                          ", the limit of Float32, in Float64 bands: use -srcnodata " + number_text(limit));
        return;
    }
}

void match_nodata(SourceState& s) {
    s.nodata.clear();
    for (BandMetadata& b : s.scene.bands) {
        if (s.options.nodata) {
            NodataValue v;
            v.real = *s.options.nodata;
            b.nodata = v;
        }
        s.nodata.push_back(b.nodata ? match_in_type(*b.nodata, sample_type(b.type)) : NodataMatch{});
    }
    note_short_nodata(s);
    for (size_t k = 0; k < s.nodata.size(); ++k) {
        const BandMetadata& b = s.scene.bands[k];
        // NaN needs no comparison with nodata, because readers always check for NaN.
        if (!b.nodata || s.nodata[k].active || std::isnan(b.nodata->as_double())) continue;
        s.notes.push_back((s.options.nodata ? "-srcnodata " : "the nodata value ") +
                          number_text(b.nodata->as_double()) +
                          (s.options.nodata ? " is ignored: " : " of " + s.name() + " is ignored: ") +
                          GDALGetDataTypeName(b.type) + " cannot store it");
        return;
    }
}

/// Sets the metadata and size of the scene. All other settings depend on how pixels are read.
void choose_scene(SourceState& s, SceneMetadata scene) {
    s.scene = std::move(scene);
    for (const std::string& note : s.scene.notes)
        s.notes.push_back(s.name() + ": " + note);
    s.scales.own = has_own_scales(s.scene);
    s.file.samples = s.scene.window.w;
    s.file.lines = s.scene.window.h;
    if (s.file.samples <= 0 || s.file.lines <= 0)
        throw Error(s.name() + " has no pixels: its size is " + size_text(s.file.samples, s.file.lines));
}

void choose_parts(SourceState& s, GDALDataset* dataset) {
    choose_window(s);
    take_bad_bands(s);
    choose_bands(s);
    exclude_bands(s);
    keep_bands(s);
    check_types(s, dataset);
    if (dataset != nullptr) check_planetary_label(*dataset);
    match_nodata(s);
}

/// Prepares a virtual scene (.hsi), whose values are computed when they are read.
void choose_computed(SourceState& s) {
    const SceneDocument document =
        s.options.document ? *s.options.document : read_scene_document(s.options.path);
    const auto computed = open_computed(document, s.options.path);
    const DatasetHandle description = open_description(document, computed->cube->shape(), s.options.path);
    choose_scene(s, read_metadata(*description));
    s.scene.driver = "HSI";
    const BandMetadata& first = s.scene.bands.front();
    computed->rule = StoreRule(sample_type(first.type), document.keep_nan ? std::nullopt : first.nodata);
    if (const auto moved = computed->rule.move(); moved && computed->computed)
        computed->computed->replace(moved->from, moved->to);
    s.backing = std::shared_ptr<const ComputedScene>(computed);
    choose_parts(s, description.get());
    check_band_lists(s);
    const stream::BlockLayout layout = computed->cube->layout();
    s.blocks.samples = layout.block_samples;
    s.blocks.lines = layout.block_lines;
}

/// Returns the data type of the values of an array. Signed samples may mean unsigned values (_Unsigned).
GDALDataType meant_type(const Hdf5Chunks& array, GDALDataType meant) {
    const bool turned =
        (meant == GDT_Byte && array.type == GDT_Int16) || (meant == GDT_UInt16 && array.type == GDT_Int16) ||
        (meant == GDT_UInt32 && array.type == GDT_Int32) || (meant == GDT_UInt64 && array.type == GDT_Int64);
    return turned && array.sample_bytes == GDALGetDataTypeSizeBytes(meant) ? meant : array.type;
}

/// Returns the arrays of an HDF5 file if their chunks can be decoded without the HDF5 library; otherwise
/// null.
std::shared_ptr<ChunkArrays> chunk_arrays_of(const SourceState& s, RemoteOpening& opening) {
    if (!is_local(s.product->path) && VSIIsLocal(s.product->path.c_str())) return nullptr;
    std::vector<std::string> names;
    for (const CubePart& part : s.product->parts) {
        if (!part.view.empty()) return nullptr;
        names.push_back(part.array);
    }
    auto arrays = find_hdf5_chunks(s.product->path, names);
    if (arrays.empty()) return nullptr;
    for (size_t p = 0; p < arrays.size(); ++p)
        arrays[p].type = meant_type(arrays[p], s.product->parts[p].type);
    for (size_t p = 0; p < arrays.size(); ++p) {
        const CubePart& part = s.product->parts[p];
        const auto size = [&](int axis) { return arrays[p].size[static_cast<size_t>(axis)]; };
        // GDAL and the chunk index of the file must agree on the array. GDAL may not provide the chunk size.
        if (arrays[p].type != part.type || size(part.line_axis) != s.product->lines ||
            size(part.sample_axis) != s.product->samples ||
            (part.chunk[0] > 0 && !std::equal(part.chunk.begin(), part.chunk.end(), arrays[p].chunk.begin())))
            return nullptr;
        for (const ProductBand& band : s.product->bands)
            if (static_cast<size_t>(band.part) == p && band.index >= size(part.band_axis)) return nullptr;
    }
    auto remote = RemoteFile::open(s.product->path, opening);
    if (!remote && !is_local(s.product->path)) return nullptr;
    return std::make_shared<ChunkArrays>(s.product->path, std::move(names), std::move(arrays),
                                         std::move(remote));
}

/// Returns the number and bytes of the chunks in one row of chunks, for the selected bands and all samples of
/// the window.
BlockRow chunk_row(const SourceState& s) {
    BlockRow row;
    for (size_t p = 0; p < s.chunks()->size(); ++p) {
        const CubePart& part = s.product->parts[p];
        const Hdf5Chunks& array = s.chunks()->array(p);
        const auto chunk = [&](int axis) { return array.chunk[static_cast<size_t>(axis)]; };
        std::set<int64_t> along_bands;
        for (const int b : s.bands)
            if (const ProductBand& band = s.product->bands[static_cast<size_t>(b - 1)];
                static_cast<size_t>(band.part) == p)
                along_bands.insert(band.index / chunk(part.band_axis));
        if (along_bands.empty()) continue;
        const Rect w = s.file_window();
        const int64_t across = (w.right() - 1) / chunk(part.sample_axis) - w.x / chunk(part.sample_axis) + 1;
        const uint64_t chunks = static_cast<uint64_t>(across) * along_bands.size();
        row.bytes += chunks * array.chunk_bytes();
        row.blocks += chunks;
        row.lines = row.lines == 0 ? chunk(part.line_axis) : std::min(row.lines, chunk(part.line_axis));
        row.largest = std::max(row.largest, array.chunk_bytes());
    }
    return row;
}

/// Returns the number and bytes of the blocks of a GeoTIFF in one row of blocks.
BlockRow block_row(const SourceState& s) {
    const Rect w = s.window();
    const int64_t across = (w.right() - 1) / s.blocks.samples - w.x / s.blocks.samples + 1;
    const std::set<int> bands(s.bands.begin(), s.bands.end());
    const uint64_t blocks = static_cast<uint64_t>(across) * (s.blocks.bands_apart ? bands.size() : 1);
    return {blocks * s.block_bytes(), s.block_bytes(), blocks, s.blocks.lines};
}

/// Prepares a product whose cube is read from its arrays, without GDAL's two-dimensional readers.
void choose_arrays(SourceState& s, RemoteOpening& opening) {
    const CubePart& part = s.product->parts.front();
    s.blocks.samples = part.chunk_samples(s.file.samples);
    s.blocks.lines = part.chunk_lines();
    if (auto chunks = chunk_arrays_of(s, opening)) { // GDAL may not provide the chunk size
        const auto& chunk = chunks->array(0).chunk;
        s.blocks.samples = chunk[static_cast<size_t>(part.sample_axis)];
        s.blocks.lines = chunk[static_cast<size_t>(part.line_axis)];
        s.backing = std::move(chunks);
    }
    if (s.blocks.samples >= s.file.samples) s.blocks.samples = 0;
    if (s.chunks()) return;
    uint64_t largest = 0;
    for (const CubePart& each : s.product->parts)
        largest = std::max(largest, each.chunk_bytes());
    if (largest > 0) keep_buffers_of(largest);
    constexpr uint64_t small_chunk = 64 << 10;
    if (s.product->driver == "HDF5" && largest > 0 && largest < small_chunk) share_one_heap();
}

void choose_access(SourceState& s, GDALDataset& dataset, RemoteOpening& opening) {
    GDALRasterBand* band = dataset.GetRasterBand(s.bands.front());
    s.blocks.half = std::any_of(s.bands.begin(), s.bands.end(), [&](int b) {
        return sample_type(dataset.GetRasterBand(b)->GetRasterDataType()) == SampleType::float16;
    });
    int bx = 0, by = 0;
    band->GetBlockSize(&bx, &by);
    s.blocks.samples = bx;
    s.blocks.lines = std::max(1, by);
    const char* interleave = dataset.GetMetadataItem("INTERLEAVE", "IMAGE_STRUCTURE");
    s.blocks.bands_apart = interleave == nullptr || !EQUAL(interleave, "PIXEL");
    if (const char* const codec = dataset.GetMetadataItem("COMPRESSION", "IMAGE_STRUCTURE"))
        s.blocks.codec = codec;
    // Only for GTiff is it certain that GDAL reads uncompressed blocks directly.
    s.blocks.compressed = !EQUAL(s.scene.driver.c_str(), "GTiff") || !s.blocks.codec.empty();
    // If an alpha band is in the same blocks as the masked bands, GDAL must decode these blocks for the mask
    // anyway.
    const bool masks_itself = s.masking.kind != MaskKind::none && !s.blocks.bands_apart;
    if (s.scene.driver == "GTiff" && !s.blocks.half && !masks_itself &&
        (!s.blocks.bands_apart || s.blocks.samples * s.blocks.lines <= largest_block))
        if (auto coding = tiff_coding(dataset)) {
            if (!is_local(s.options.path)) s.server.file = RemoteFile::open(s.options.path, opening);
            if (is_local(s.options.path) || s.server.file)
                s.backing = TiffBlocks{std::move(*coding), std::make_shared<BlockStore>()};
        }
    if (s.masking.kind != MaskKind::none || s.tiff()) return;
    auto layout = raw_layout(dataset);
    if (!layout) return;
    RawFile raw{std::move(*layout), nullptr};
    if (is_local(raw.layout.path)) {
        FileHandle file(::open(raw.layout.path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) throw Error("cannot open '" + raw.layout.path + "': " + std::strerror(errno));
        raw.file = std::make_shared<const FileHandle>(std::move(file));
    } else if ((s.server.file = RemoteFile::open(raw.layout.path, opening))) {
        raw.file = {s.server.file, &s.server.file->local()};
    }
    const bool there = raw.file != nullptr;
    s.backing = std::move(raw);
    if (!there || !lies_as_told(s, dataset)) {
        s.backing = ThroughGdal();
        s.server.file.reset();
        return;
    }
    s.blocks.samples = 0;
    s.blocks.lines = 1;
    check_raw_span(s);
    if (s.scene.driver == "ENVI" && !s.growing) check_raw_end(s);
}

/// Returns what kind of file a path is if it is not a raster, and advice; empty if unknown.
std::pair<std::string, std::string> other_kind(const std::string& path) {
    VSIStatBufL info{};
    if (VSIStatExL(path.c_str(), &info, VSI_STAT_EXISTS_FLAG | VSI_STAT_NATURE_FLAG) == 0 &&
        VSI_ISDIR(info.st_mode))
        return {"a folder", "Use a file in it."};
    if (!is_regular_file(path)) return {};
    constexpr size_t enough = 200;
    const std::string begin = beginning_of_file(path, enough), mark = R"("format": "gdal_hsi_)";
    if (begin.rfind('{', 0) == 0 && begin.find(mark + "statistics\"") != std::string::npos)
        return {"a file of statistics",
                "Give it with -statistics to the tools that take it, such as gdal_hsi_pca and gdal_hsi_mnf."};
    if (begin.rfind('{', 0) == 0 && begin.find(mark) != std::string::npos)
        return {"a model of these tools",
                "Use it with -apply; docs/models.md lists the models of each tool."};
    if (is_scene_document(path))
        return {"a virtual scene (.hsi)", "Set GDAL_DRIVER_PATH to the folder of the plugin gdal_HSI, or "
                                          "write the scene as a raster first."};
    const GdalErrors quiet;
    const DatasetHandle vector = open_in_gdal({path, {}, GDAL_OF_VECTOR, {}, {}});
    if (!vector || vector->GetLayerCount() == 0) return {};
    const std::string driver = vector->GetDriver() ? vector->GetDriver()->GetDescription() : "vector";
    return {driver == "CSV" ? "a table of text (CSV)" : "a vector file (" + driver + ")",
            "Use a raster as src; labels, points and masks can be vector files."};
}

/// Throws Error for a FITS file whose image has only one axis, or more axes than GDAL's driver supports.
void check_fits_axes(const std::string& path) {
    constexpr size_t header = 2880, card = 80, key = 10;
    const std::string text = beginning_of_file(path, header);
    if (text.rfind("SIMPLE  =", 0) != 0) return;
    const auto number = [&](const std::string& name) {
        const std::string begin = (name + std::string(8 - name.size(), ' ')) + "=";
        for (size_t at = 0; at + card <= text.size(); at += card)
            if (text.compare(at, begin.size(), begin) == 0)
                return std::atoi(text.substr(at + key, card - key).c_str());
        return 0;
    };
    const int axes = number("NAXIS");
    constexpr int most_axes = 999; // limit of the FITS standard
    if (axes < 1 || axes == 2 || axes == 3 || axes > most_axes) return;
    std::string shape, first;
    for (int k = 1; k <= axes; ++k)
        shape += (k > 1 ? " x " : "") + std::to_string(number("NAXIS" + std::to_string(k)));
    for (int k = 4; k <= axes; ++k)
        first += k > 4 ? ", 0" : "0";
    throw Error("cannot open '" + path + "': its image has " + counted(axes, "axis", "axes") + " (" + shape +
                    "), but GDAL's driver FITS reads 2 or 3",
                axes == 1 ? "Write the spectrum as a table (.csv) or in netCDF."
                          : "Write one cube of it, for example with astropy: fits.writeto('cube.fits', "
                            "fits.getdata('" +
                                path + "')[" + first + "], fits.getheader('" + path + "'))");
}

/// Opens a growing file after its first line has arrived.
std::shared_ptr<GrowingFile> begin_to_follow(const OpenOptions& options) {
    auto file = std::make_shared<GrowingFile>(options.path, *options.follow, options.cancel);
    if (file->wait(0) == 0) {
        const std::string rest = file->rest();
        throw Error(rest.empty() ? "no line of '" + options.path + "' has arrived" : rest,
                    "Use a larger -follow SECONDS, the longest wait for a line.");
    }
    file->show(1);
    return file;
}

} // namespace

DatasetHandle open_dataset(const OpenOptions& options, const std::string& stack) {
    register_drivers();
    for (const std::string& name : options.drivers)
        if (GetGDALDriverManager()->GetDriverByName(name.c_str()) == nullptr)
            throw UsageError("-if " + name + ": GDAL has no such driver",
                             "gdalinfo --formats lists the drivers.");
    if (options.drivers.empty() && stack.empty() && may_lead_to_matlab(options.path))
        if (DatasetHandle matlab = open_matlab(options.path)) {
            if (!options.open_options.empty())
                throw UsageError("-oo " + options.open_options.front() +
                                 ": MATLAB files have no open options");
            return matlab;
        }
    try_hdf(options.path);
    GdalErrors errors;
    const auto open = [&] {
        return open_in_gdal({stack.empty() ? options.path : stack, options.header, GDAL_OF_RASTER,
                             options.drivers, options.open_options});
    };
    DatasetHandle dataset = open();
    // If the directory of a file such as a TIFF cannot be read, drivers skip it with a warning, or fail.
    const auto lacks_bytes = [&] {
        const std::string failures = errors.text(std::string());
        return errors.warnings().find("IO error") != std::string::npos ||
               failures.find("read ") != std::string::npos || failures.find("Read ") != std::string::npos;
    };
    const std::string file = file_of_subdataset(options.path);
    constexpr int most_tries = 4; // the number is limited because a truncated file never becomes readable
    Tries tries(file, most_tries);
    while (lacks_bytes() && forget_cached(file) && tries.again()) {
        errors.clear();
        dataset = open();
    }
    if (lacks_bytes() && !VSIIsLocal(file.c_str()))
        throw Error("cannot open '" + options.path + "': " + errors.text(errors.warnings()),
                    "Try again later.");
    if (dataset && !options.named_by.empty()) check_dataset_names(*dataset, options.named_by);
    if (dataset) return dataset;
    if (const auto library = stack.empty() ? plain_library(options.path) : std::nullopt)
        throw Error("'" + options.path + "' is a spectral library (" +
                        counted(library->spectra.size(), "spectrum", "spectra") + " of " +
                        counted(library->bands(), "band") + "), not a raster",
                    "Use libraries with gdal_hsi_unmix, gdal_hsi_detect -target, gdal_hsi_atdca -reference "
                    "or gdal_hsi_info.");
    if (const auto [kind, advice] = stack.empty() && options.drivers.empty()
                                        ? other_kind(options.path)
                                        : std::pair<std::string, std::string>();
        !kind.empty())
        throw Error("cannot open '" + options.path + "': it is " + kind + ", not a raster", advice);
    check_fits_axes(options.path);
    if (const std::string header = unreadable_header(options.path); !header.empty())
        throw Error("cannot open '" + options.path + "': its header '" + header + "' is not readable");
    throw Error("cannot open '" + options.path +
                "': " + errors.text("GDAL does not recognise it as a raster"));
}

DatasetHandle DatasetPool::take() {
    {
        const std::lock_guard lock(m_mutex);
        if (!m_idle.empty()) {
            DatasetHandle dataset = std::move(m_idle.back());
            m_idle.pop_back();
            return dataset;
        }
    }
    return open_dataset(m_options, m_stack);
}

void DatasetPool::give(DatasetHandle dataset) {
    const std::lock_guard lock(m_mutex);
    m_idle.push_back(std::move(dataset));
}

uint64_t SourceState::block_bytes() const {
    const auto block = static_cast<uint64_t>(blocks.samples * blocks.lines);
    // Bytes of one sample, for the largest type of the selected bands.
    int largest = 0;
    for (const BandMetadata& b : scene.bands)
        largest = std::max(largest, GDALGetDataTypeSizeBytes(b.type));
    return block * static_cast<uint64_t>(blocks.bands_apart ? largest : largest * scene.file_bands);
}

bool SourceState::wide() const {
    if (!parts.empty()) return true;
    for (size_t k = 0; k < bands.size(); ++k)
        if (nodata[k].active && !exact_in_float(sample_type(scene.bands[k].type))) return true;
    return false;
}

ChunkArrays* SourceState::chunks() const {
    const auto* const arrays = std::get_if<std::shared_ptr<ChunkArrays>>(&backing);
    return arrays != nullptr ? arrays->get() : nullptr;
}

const ComputedScene* SourceState::computed() const {
    const auto* const own = std::get_if<std::shared_ptr<const ComputedScene>>(&backing);
    return own != nullptr ? own->get() : nullptr;
}

BlockStore* SourceState::store() const {
    return chunks() ? &chunks()->store() : tiff() ? tiff()->store.get() : nullptr;
}

RemoteFile* SourceState::server_file() const { return chunks() ? chunks()->remote() : server.file.get(); }

uint64_t SourceState::reader_bytes() const {
    const uint64_t block = block_bytes();
    if (tiff()) return 2 * block; // one block as stored and one decoded
    uint64_t bytes = blocks.compressed ? 2 * block : block;
    if (wide())
        bytes += std::max(block, static_cast<uint64_t>(wide_scratch_bytes));
    else if (blocks.bands_apart && blocks.samples * blocks.lines <= largest_block)
        bytes += block;
    return bytes;
}

FileSource::FileSource(std::shared_ptr<const SourceState> state)
    : m(std::move(state)), m_facts(facts_of(*m)) {}

const SourceState& SourceAccess::state(const RasterSource& source) {
    return dynamic_cast<const FileSource&>(source).state();
}
std::shared_ptr<RasterSource> SourceAccess::make(SourceState state) {
    return std::make_shared<FileSource>(std::make_shared<const SourceState>(std::move(state)));
}
const SceneMetadata& metadata_of(const RasterSource& source) { return SourceAccess::state(source).scene; }

namespace {

SourceState opened(const OpenOptions& options, RemoteOpening& opening) {
    SourceState state;
    SourceState* const s = &state;
    s->options = options;
    s->server.asked = opening.file();
    // If the user gives a driver or open options, the file is not read as a virtual scene.
    if (options.document ||
        (options.drivers.empty() && options.open_options.empty() && is_scene_document(options.path))) {
        choose_computed(*s);
        return state;
    }
    if (options.follow) {
        s->growing = begin_to_follow(options);
        s->options.path = s->growing->file().data;
        s->options.header = s->growing->shown_header();
    } else if (options.drivers.empty() && options.open_options.empty()) {
        SceneFile scene = find_scene(options.path);
        s->options.path = std::move(scene.path);
        s->options.header = std::move(scene.header);
        s->product = std::move(scene.product);
        s->notes = std::move(scene.notes);
        if (s->product) s->notes.insert(s->notes.end(), s->product->notes.begin(), s->product->notes.end());
    } else if (const auto envi = envi_file_of_header(options.path)) {
        s->options.path = envi->data;
        s->options.header = envi->header;
    } else {
        check_netcdf_length(file_of_subdataset(options.path));
    }
    if (s->product && !s->product->parts.empty()) {
        s->backing = ProductArrays();
        s->file.lines_rise = s->product->lines_rise;
        s->file.samples_fall = s->product->samples_fall;
        const auto& parts = s->product->parts;
        s->more_invalid = !s->options.nodata && std::any_of(parts.begin(), parts.end(), [](const auto& part) {
            return part.invalid.any();
        });
        choose_scene(*s, scene_of(*s->product));
        choose_parts(*s, nullptr);
        check_band_lists(*s);
        choose_arrays(*s, opening);
        return state;
    }
    const std::string stack = s->product ? s->product->stack : std::string();
    DatasetHandle dataset = open_dataset(s->options, stack);
    const GdalErrors errors;
    if (dataset->GetRasterCount() == 0) refuse_empty(*dataset, s->name());
    choose_scene(*s, read_metadata(*dataset));
    if (s->product) complete_scene(*s->product, s->scene);
    check_envi_header(*s);
    check_sources_of_vrt(*s, *dataset);
    if (reads_hdf5(s->scene.driver)) {
        check_axes(*dataset, s->name());
        check_values_are_there(*dataset);
    }
    if (s->scene.driver == "VRT" && stack.empty()) check_virtual_sources(s->options.path);
    if (!s->scene.geotransform) note_lost_locations(*s);
    choose_parts(*s, dataset.get());
    check_band_lists(*s);
    find_mask(*s, *dataset);
    choose_access(*s, *dataset, opening);
    if (s->growing && !s->raw())
        throw Error("-follow: " + s->name() + " is not read as a raw file",
                    "Leave -follow out if the file is complete.");
    s->pool = std::make_shared<DatasetPool>(s->options, stack);
    // A raw file is read without GDAL, so its handle is not kept. without_bands() may still need a handle,
    // which can be opened again at low cost.
    if (!s->raw()) s->pool->give(std::move(dataset));
    return state;
}

} // namespace

std::shared_ptr<RasterSource> open_raster(const OpenOptions& options) {
    const std::string file = file_of_subdataset(options.path);
    if (!options.document) refuse_pipe_beside(options.path);
    RemoteOpening opening(file);
    const auto open_once = [&] {
        std::shared_ptr<RasterSource> source;
        Losses().check_after([&] { source = SourceAccess::make(opened(options, opening)); });
        return source;
    };
    try {
        return open_once();
    } catch (const UsageError&) {
        throw;
    } catch (const Cancelled&) {
        throw;
    } catch (const Error& error) {
        const bool blamed = std::string(error.what()).find(server_is_to_blame) != std::string::npos;
        if (blamed || VSIIsLocal(file.c_str())) throw;
        // If a server does not deliver a file, the file looks damaged, empty or of another type.
        const std::string trouble = trouble_with(file);
        if (trouble.empty()) return open_once();
        throw Error("cannot open '" + options.path + "': " + trouble + " (" + error.what() + ")",
                    "Try again later.");
    }
}

std::shared_ptr<RasterSource> FileSource::with_bands(const std::vector<int>& indices) const {
    if (m->grid || !m->parts.empty())
        throw std::logic_error("bands of pixels that come from elsewhere, or in parts, are not to be chosen");
    SourceState s = *m;
    s.bands.clear();
    s.scene.bands.clear();
    s.nodata.clear();
    for (const int index : indices) {
        const auto k = static_cast<size_t>(index);
        s.bands.push_back(m->bands[k]);
        s.scene.bands.push_back(m->scene.bands[k]);
        s.nodata.push_back(m->nodata[k]);
    }
    return SourceAccess::make(std::move(s));
}

std::shared_ptr<RasterSource> SourceAccess::divided(const RasterSource& source,
                                                    const std::vector<SamplePart>& parts, GDALDataType as) {
    const SourceState& from = state(source);
    if (from.grid || from.scales.applied)
        throw std::logic_error("pixels that come from elsewhere, or are scaled, are not to be divided");
    SourceState s = from;
    s.type = as;
    s.bands.clear();
    s.scene.bands.clear();
    s.nodata.clear();
    for (size_t k = 0; k < from.bands.size(); ++k)
        for (const SamplePart part : parts) {
            s.bands.push_back(from.bands[k]);
            s.scene.bands.push_back(from.scene.bands[k]);
            s.nodata.push_back(from.nodata[k]);
            s.parts.push_back(part);
        }
    return make(std::move(s));
}

Growth* FileSource::growth() const { return m->growing.get(); }
const Chain* FileSource::chain() const { return m->computed(); }

std::shared_ptr<RasterSource> FileSource::grown_to(int64_t lines) const {
    SourceState s = *m;
    s.scene.window.h = s.file.lines = lines;
    s.growing->show(lines);
    s.pool = std::make_shared<DatasetPool>(s.options); // older handles assume a single line
    return SourceAccess::make(std::move(s));
}

std::shared_ptr<RasterSource> FileSource::in_sums() const {
    static_assert(stream::value_parts == 3);
    return SourceAccess::divided(*this, {SamplePart::value, SamplePart::remainder, SamplePart::rest},
                                 m->type);
}

std::shared_ptr<RasterSource> FileSource::in_samples() const {
    for (const BandMetadata& b : m->scene.bands)
        if (m->type == GDT_Float64 && (b.type == GDT_Int64 || b.type == GDT_UInt64))
            throw Error(m->name() + " has bands of " + GDALGetDataTypeName(b.type) +
                            " and of other types, but no type can store the values of all",
                        "Choose bands of one type with -b.");
    return SourceAccess::divided(*this, all_bits(sample_type(m->type)), m->type);
}

stream::CubeShape FileSource::shape() const {
    return {m->scene.window.w, m->scene.window.h, static_cast<int>(m->bands.size())};
}

int FileSource::computes_on() const {
    return m->computed() && !m->masking.counted && !m->scales.applied ? computed_on(*m) : -1;
}
uint64_t FileSource::device_bytes(int64_t samples, int64_t lines) const {
    return m->computed() ? m->computed()->cube->device_bytes(samples, lines) : 0;
}
stream::BlockLayout FileSource::layout() const {
    if (m->grid) return m->grid->pixels->layout();
    stream::BlockLayout layout{m->blocks.samples, m->blocks.lines, m->store() ? m->store()->kept_lines() : 0};
    if (m->computed()) layout.kept_lines = m->computed()->cube->layout().kept_lines;
    if (layout.block_samples >= m->scene.window.w) layout.block_samples = 0;
    layout.block_lines = std::min(layout.block_lines, m->scene.window.h);
    return layout;
}

std::shared_ptr<RasterSource> FileSource::with_mask(std::shared_ptr<const stream::PixelMask> mask) const {
    SourceState s = *m;
    s.masking.counted = std::move(mask);
    return SourceAccess::make(std::move(s));
}

std::unique_ptr<stream::CubeReader> FileSource::open_reader() const {
    auto reader = m->grid ? m->grid->pixels->open_reader()
                          : scaled_reader(watched(m->chunks()      ? make_chunk_reader(m)
                                                  : m->computed()  ? make_computed_reader(m)
                                                  : m->in_arrays() ? whole_reader(make_product_reader, m)
                                                  : m->raw()       ? make_raw_reader(m)
                                                                   : whole_reader(make_gdal_reader, m),
                                                  m),
                                          m);
    return m->masking.counted ? stream::masked_reader(std::move(reader), m->masking.counted)
                              : std::move(reader);
}

uint64_t FileSource::stored_bytes_per_pixel() const {
    uint64_t bytes = 0;
    for (size_t k = 0; k < m->scene.bands.size(); ++k) // parts of the same band are read together
        if (m->parts.empty() || m->parts[k] == m->parts[0])
            bytes += static_cast<uint64_t>(GDALGetDataTypeSizeBytes(m->scene.bands[k].type));
    return bytes;
}

uint64_t FileSource::reader_bytes() const {
    const uint64_t masking = m->masking.counted ? stream::masked_reader_bytes(m->scene.window.w) : 0;
    if (m->grid) return m->grid->pixels->reader_bytes() + masking;
    if (m->computed()) return m->computed()->cube->reader_bytes() + masking;
    if (m->chunks()) return chunk_reader_bytes(*m->chunks()) + masking;
    if (m->in_arrays()) return product_reader_bytes(*m->product) + masking;
    return (m->raw() ? 0 : m->reader_bytes()) + masking;
}

uint64_t FileSource::window_bytes(int64_t samples, int64_t lines) const {
    if (m->grid) return m->grid->pixels->window_bytes(samples, lines);
    return m->computed() ? computed_window_bytes(*m, samples, lines) : 0;
}

void FileSource::end_with(const CancelFlag* cancel) const {
    if (RemoteFile* const remote = m->server_file()) remote->end_with(cancel);
}
void FileSource::check_unchanged() const {
    m->server.losses.check();
    if (m->computed()) {
        m->computed()->watch.check();
        m->computed()->behind->check_unchanged();
    }
    if (RemoteFile* const remote = m->server_file()) return remote->check_unchanged();
    m->server.asked.check_unchanged(nullptr);
}
bool FileSource::held_by_system() const {
    constexpr size_t probes = 4096; // checking every page of a 10 GB file takes a tenth of a second
    return m->raw() && !m->server.file && m->raw()->file->held_by_system(probes);
}

uint64_t FileSource::shared_block_bytes() const {
    if (m->computed()) return m->computed()->behind->shared_block_bytes();
    return m->raw() || m->in_arrays() || m->grid || m->tiff() || m->blocks.bands_apart ? 0 : m->block_bytes();
}

uint64_t FileSource::cache_bytes() const {
    constexpr uint64_t least = uint64_t{8} << 20;
    if (m->computed()) return m->computed()->behind->cache_bytes();
    if (m->raw() || m->in_arrays() || m->grid || m->tiff()) return least;
    // Two rows of blocks are cached, because threads work in neighbouring rows. A block with interleaved
    // bands contains all bands of the file.
    const Rect w = m->scene.window;
    const auto blocks_across =
        static_cast<uint64_t>((w.right() - 1) / m->blocks.samples - w.x / m->blocks.samples + 1);
    const auto block_pixels = static_cast<uint64_t>(m->blocks.samples * m->blocks.lines);
    const uint64_t size =
        m->blocks.bands_apart
            ? stored_bytes_per_pixel()
            : static_cast<uint64_t>(GDALGetDataTypeSizeBytes(m->type) * m->scene.file_bands);
    const uint64_t wanted = 2 * blocks_across * block_pixels * size;
    return std::clamp(wanted, least, std::max(least, usable_ram() / 8));
}

uint64_t FileSource::take_memory(uint64_t most, int lanes) const {
    if (m->computed()) {
        const auto& computed = m->computed()->computed;
        const uint64_t own = computed ? computed->take_memory(most, folder_of_scratch()) : 0;
        return own + m->computed()->behind->take_memory(most - own, lanes);
    }
    BlockStore* const store = m->store();
    const uint64_t list = m->chunks() ? m->chunks()->list_bytes() : 0;
    if (list >= most) return list;
    most -= list;
    RemoteFile* const remote = m->server_file();
    const auto samples = static_cast<uint64_t>(m->scene.window.area()) * stored_bytes_per_pixel();
    uint64_t fetched = 0;
    if (remote != nullptr) { // the stored bytes rarely exceed the decoded samples
        fetched = remote->share_memory(most / (store != nullptr ? 2 : 1), samples);
        most -= std::min(fetched, most);
    }
    if (store == nullptr) return fetched;
    const Rect w = m->file_window();
    const uint64_t kept = store->share_memory(most, m->chunks() ? chunk_row(*m) : block_row(*m), w.y,
                                              w.bottom(), lanes),
                   ahead = remote != nullptr ? store->share_ahead(most - std::min(kept, most), samples) : 0;
    return list + fetched + kept + ahead;
}

bool FileSource::located() const { return m->scene.geotransform || locations_behind(*m).has_value(); }

std::vector<std::string> FileSource::band_items(const char* name) const {
    std::vector<std::string> items;
    for (const BandMetadata& b : m->scene.bands)
        items.push_back(value_of(b.domains, "", name));
    return items;
}

} // namespace hsi::raster
