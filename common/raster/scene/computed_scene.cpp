// SPDX-License-Identifier: MIT
#include "raster/scene/computed_scene.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/file_path.h"
#include "raster/gdal_errors.h"
#include "raster/gdal_type.h"
#include "raster/lookup_table.h"
#include "raster/products/product.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

namespace hsi::raster {
namespace {

/// Returns the virtual scenes that this thread is opening. Each one is the source of the previous one.
std::vector<std::string>& being_opened() {
    thread_local std::vector<std::string> names;
    return names;
}

class ChainOpening {
  public:
    explicit ChainOpening(const std::string& name) {
        auto& names = being_opened();
        constexpr size_t deepest = 64;
        const bool again = std::any_of(names.begin(), names.end(),
                                       [&](const std::string& other) { return same_file(other, name); });
        if (again || names.size() >= deepest)
            throw Error(again ? "'" + name + "' is computed from itself"
                              : "'" + name + "' is computed from more than " + std::to_string(deepest) +
                                    " scenes in a row",
                        "Make the scene again.");
        names.push_back(name);
    }
    ~ChainOpening() { being_opened().pop_back(); }
    ChainOpening(const ChainOpening&) = delete;
    ChainOpening& operator=(const ChainOpening&) = delete;
};

/// Returns the text for DocumentSource::values, which states the nodata value of runs of bands: "224 x
/// -9999".
std::string values_text_of(const SourceState& s) {
    std::string all;
    const auto text_of = [&](size_t k) {
        const BandMetadata& band = s.scene.bands[k];
        const NodataMatch& nodata = s.nodata[k];
        std::string text = "none";
        if (nodata.active) {
            double value = 0;
            GDALCopyWords(nodata.bytes, band.type, 0, &value, GDT_Float64, 0, 1);
            text = number_text(value);
        }
        if (s.scales.applied)
            text +=
                " * " + number_text(band.scale.value_or(1)) + " + " + number_text(band.offset.value_or(0));
        return text;
    };
    for (size_t k = 0; k < s.bands.size();) {
        const std::string text = text_of(k);
        const size_t first = k;
        while (k < s.bands.size() && text_of(k) == text)
            ++k;
        all += (all.empty() ? "" : ", ") + std::to_string(k - first) + " x " + text;
    }
    if (s.masking.kind != MaskKind::none) all += ", with a mask";
    return all;
}

std::shared_ptr<RasterSource> open_behind(const DocumentSource& source, const std::string& name,
                                          const std::string& document) {
    OpenOptions options;
    options.path = source.path;
    options.document = source.scene;
    if (source.scene) options.path = name;
    options.named_by = document;
    options.open_options = source.open_options;
    options.drivers = source.drivers;
    options.bands = source.bands;
    options.window = source.window;
    options.nodata = source.nodata;
    options.use_bbl = source.bands.empty();
    auto scene = open_raster(options);
    if (source.scaled) scene = scene->scaled();
    const std::string values = values_text_of(SourceAccess::state(*scene));
    if (!source.scene && !source.values.empty() && source.values != values)
        throw Error("the nodata of '" + source.path +
                        "' was changed after the scene was made (bands and nodata were " + source.values +
                        ", are now " + values + ")",
                    "Make the scene again: results from the old source may not apply.");
    return scene;
}

/// Reads the selected bands and the window of a virtual scene by computing its values.
class ComputedReader final : public stream::CubeReader {
  public:
    explicit ComputedReader(std::shared_ptr<const SourceState> source)
        : m_source(std::move(source)), m_scene(*m_source->computed()), m_reader(m_scene.cube->open_reader()),
          m_whole(takes_all(*m_source)) {}

    /// Returns true if the source selects all bands in their order.
    static bool takes_all(const SourceState& s) {
        if (!s.parts.empty() || static_cast<int>(s.bands.size()) != s.computed()->cube->shape().bands)
            return false;
        for (size_t k = 0; k < s.bands.size(); ++k)
            if (s.bands[k] != static_cast<int>(k) + 1) return false;
        return true;
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        const Rect r = in_scene(window);
        CubeView<float> all = dst;
        if (!m_whole) {
            const int bands = m_scene.cube->shape().bands;
            m_all.resize(static_cast<size_t>(r.area() * bands));
            all = CubeView<float>::packed(m_all.data(), bands, r.h, r.w);
        }
        m_reader->read(r, all);
        for (int k = 0; k < dst.bands; ++k)
            for (int64_t line = 0; line < r.h; ++line)
                deliver(static_cast<size_t>(k),
                        all.row(m_whole ? k : m_source->bands[static_cast<size_t>(k)] - 1, line),
                        dst.row(k, line), static_cast<size_t>(r.w));
    }
    std::optional<CubeView<float>> view_on(int device, const Rect& window) override {
        if (computed_on(*m_source) != device) return std::nullopt;
        return m_reader->view_on(device, in_scene(window));
    }
    void prefetch(const Rect& window) override { m_reader->prefetch(in_scene(window)); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_reader->look_ahead(bytes, threads); }

  private:
    Rect in_scene(const Rect& window) const {
        const Rect own = m_source->window();
        return {window.x + own.x, window.y + own.y, window.w, window.h};
    }

    /// Converts computed values to what a reader would return if the values had been stored in a file.
    void deliver(size_t k, const float* values, float* to, size_t count) {
        const StoreRule& rule = m_scene.rule;
        const NodataMatch& nodata = m_source->nodata[k];
        if (rule.floats() && !nodata.active && m_source->parts.empty()) {
            if (values != to) std::copy_n(values, count, to);
            return;
        }
        m_stored.resize(count); // 8 bytes per value, enough for each type
        void* const samples = m_stored.data();
        if (rule.floats()) {
            auto* const stored = static_cast<float*>(samples);
            std::copy_n(values, count, stored);
            rule.finish(stored, count);
        } else {
            rule.store(values, count, samples);
        }
        m_source->deliver(k, samples, static_cast<ptrdiff_t>(rule.sample_bytes()), gdal_type(rule.type()),
                          false, to, count);
    }

    const std::shared_ptr<const SourceState> m_source;
    const ComputedScene& m_scene;
    const std::unique_ptr<stream::CubeReader> m_reader;
    const bool m_whole;
    std::vector<float> m_all;
    std::vector<double> m_stored;
};

} // namespace

std::vector<Chain::Link> ComputedScene::links() const {
    const Chain* const before = behind->chain();
    auto links = before != nullptr ? before->links() : std::vector<Link>();
    const char* const kept = computed != nullptr ? computed->kept() : nullptr;
    links.push_back({link.operation, computed != nullptr ? computed->halo() : 0,
                     kept != nullptr ? kept : std::string(), computed != nullptr && computed->on_devices(),
                     computed != nullptr ? computed->per_pixel() : Cost()});
    return links;
}

std::string ComputedScene::source() const {
    const Chain* const before = behind->chain();
    return before != nullptr ? before->source() : behind->path();
}

void ComputedScene::compute_on(const std::vector<CudaDevice>& devices) const {
    if (const Chain* const before = behind->chain()) before->compute_on(devices);
    if (computed) computed->compute_on(devices);
}

std::shared_ptr<ComputedScene> open_computed(const SceneDocument& document, const std::string& name) {
    const ChainOpening opening(name);
    auto made = std::make_shared<ComputedScene>();
    made->link = document.link;
    // Starts before the files are compared with the document, so that no change is missed.
    made->watch = SourceWatch(document.source, name);
    check_unchanged(document.source, name);
    const std::string inside = "a scene in '" + name + "'";
    try {
        const auto behind = open_behind(document.source, inside, name);
        made->behind = behind;
        const auto& source = document.source;
        if (source.file_count && *source.file_count != static_cast<int64_t>(source.files.size()))
            throw Error("its source has " + counted(source.files.size(), "file") + " instead of " +
                        std::to_string(*source.file_count));
        if (document.link.operation == grid_operation) {
            if (document.source.table.empty()) throw Error("'table' is missing");
            made->cube = orthorectified(behind, behind, LookupTable::open(document.source.table));
        } else {
            made->cube = made->computed = std::make_shared<stream::ComputedSource>(
                behind, stream::make_operation(document.link, behind->shape()), document.link.output,
                document.store);
        }
    } catch (const UsageError& e) {
        // Bands and window come from the document, not from the user.
        throw Error("'" + name + "' does not fit its source: " + e.what(), e.advice());
    } catch (const Error& e) {
        throw Error("'" + name + "': " + e.what(), e.advice());
    }
    return made;
}

DatasetHandle open_description(const SceneDocument& document, const stream::CubeShape& cube,
                               const std::string& name) {
    const char* const drivers[] = {"VRT", nullptr};
    const GdalErrors errors;
    DatasetHandle dataset(GDALDataset::FromHandle(
        GDALOpenEx(document.raster.c_str(), GDAL_OF_RASTER | GDAL_OF_READONLY, drivers, nullptr, nullptr)));
    if (!dataset)
        throw Error("'" + name + "' is damaged: 'raster' does not describe a raster (" +
                        errors.text("nothing opens") + ")",
                    "Make it again with the tool that made it.");
    if (dataset->GetRasterXSize() != cube.samples || dataset->GetRasterYSize() != cube.lines ||
        dataset->GetRasterCount() != cube.bands)
        throw Error("'" + name + "' is damaged: it describes " +
                        size_text(dataset->GetRasterXSize(), dataset->GetRasterYSize()) + " pixels of " +
                        std::to_string(dataset->GetRasterCount()) + " bands, but computes " +
                        size_text(cube.samples, cube.lines) + " of " + std::to_string(cube.bands),
                    "Make it again with the tool that made it.");
    return dataset;
}

std::unique_ptr<stream::CubeReader> make_computed_reader(std::shared_ptr<const SourceState> source) {
    return std::make_unique<ComputedReader>(std::move(source));
}

int computed_on(const SourceState& source) {
    const auto& scene = *source.computed();
    // The computation already returns NaN for missing values, and replaces valid values that equal nodata.
    const auto moved = scene.rule.move();
    const auto as_it_comes = [&](const NodataMatch& n) {
        return !n.active || (moved && std::memcmp(n.bytes, &moved->from, sizeof moved->from) == 0);
    };
    return ComputedReader::takes_all(source) && scene.rule.floats() &&
                   std::all_of(source.nodata.begin(), source.nodata.end(), as_it_comes)
               ? scene.cube->computes_on()
               : -1;
}

uint64_t computed_window_bytes(const SourceState& source, int64_t samples, int64_t lines) {
    const auto& cube = *source.computed()->cube;
    uint64_t bytes = cube.window_bytes(samples, lines) + static_cast<uint64_t>(samples) * sizeof(double);
    if (!ComputedReader::takes_all(source))
        bytes += static_cast<uint64_t>(samples * lines) * static_cast<uint64_t>(cube.shape().bands) *
                 sizeof(float);
    return bytes;
}

DocumentSource document_source(const RasterSource& like) {
    const SourceState& s = SourceAccess::state(like);
    if (s.grid) {
        DocumentSource source = document_source(*s.grid->swath);
        source.table = s.grid->table;
        for (auto& file : files_as_they_are(s.grid->table))
            source.files.push_back(std::move(file));
        return source;
    }
    if (!s.parts.empty())
        throw std::logic_error("pixels that come from elsewhere, or in parts, have no name");
    if (s.masking.counted)
        throw UsageError("-of HSI: '" + s.options.path +
                             "' is opened with a mask, which a virtual scene cannot store",
                         "Write another format, or leave out -mask-output.");
    DocumentSource source;
    // An ENVI header that the user has named is stored instead of the data file, because it determines the
    // data file.
    source.path = s.options.header.empty() ? s.options.path : s.options.header;
    source.open_options = s.options.open_options;
    source.drivers = s.options.drivers;
    source.nodata = s.options.nodata;
    source.bands = s.bands;
    source.scaled = s.scales.applied;
    if (!s.options.document) source.values = values_text_of(s);
    if (const Rect w = s.window(); w.x != 0 || w.y != 0 || w.w != s.file.samples || w.h != s.file.lines)
        source.window = w;
    // A document in memory is stored with its content, because it is lost when the process ends.
    if (s.options.document)
        source.scene = s.options.document;
    else if (!is_local(source.path) && is_scene_document(source.path))
        source.scene = std::make_shared<const SceneDocument>(read_scene_document(source.path));
    else
        source.files = files_as_they_are(source.path);
    return source;
}

} // namespace hsi::raster
