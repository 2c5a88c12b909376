// SPDX-License-Identifier: MIT
// A raster::RasterSink that writes into an array of the caller.
#include "arrays/exchange.h"

#include "core/error.h"
#include "raster/output/nodata_choice.h"
#include "raster/raster_sink.h"
#include "raster/run_files.h"
#include "raster/sample_convert.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

namespace hsi::raster {

namespace {

/// The array of an output, and the way in which values are stored in it.
struct PendingArray {
    OutputOptions options;
    OutputSpec spec;
    SampleType type = SampleType::unknown;
    std::optional<NodataValue> nodata;
    StoreRule rule;
    hsi_array array;
    std::once_flag once;
    arrays::HostArray host; ///< host memory for an array on a device, allocated at the first write

    /// Returns the array in host memory where values are stored. Thread-safe.
    const hsi_array& store() {
        if (array.device < 0) return array;
        std::call_once(once, [this] { host = arrays::HostArray(array); });
        return host.array;
    }
    static char* at(const hsi_array& a, int band, int64_t line, int64_t sample) {
        return static_cast<char*>(a.data) + band * a.strides[0] + line * a.strides[1] + sample * a.strides[2];
    }
    /// Returns true if the array has rows of floats that can be written in place.
    bool is_view() const {
        const auto whole = [](int64_t stride) { return stride % static_cast<int64_t>(sizeof(float)) == 0; };
        return type == SampleType::float32 && (!nodata || std::isnan(nodata->as_double())) &&
               array.strides[2] == static_cast<int64_t>(sizeof(float)) && whole(array.strides[0]) &&
               whole(array.strides[1]) && reinterpret_cast<uintptr_t>(array.data) % alignof(float) == 0;
    }
};

std::string role_of(const OutputOptions& options) { return arrays::role_of_path(options.path); }

SampleType output_type(const OutputOptions& options, const OutputSpec& spec) {
    const std::string& name = options.type.empty() ? spec.type : options.type;
    if (const SampleType type = sample_type_of(name); type != SampleType::unknown) return type;
    throw UsageError("-ot " + name + ": only real types of up to 8 bytes can be written");
}

/// Describes an array and its bands for the caller.
OrderedJson description(const OutputSpec& spec, SampleType type, const std::optional<NodataValue>& nodata,
                        const RasterSource* like) {
    OrderedJson info{{"kind", "array"},
                     {"shape", {spec.shape.bands, spec.shape.lines, spec.shape.samples}},
                     {"type", name_of(type)}};
    if (nodata && !std::isnan(nodata->as_double())) info["nodata"] = nodata->as_double();
    if (spec.same_bands && like != nullptr) info["source_bands"] = like->bands();
    // Each band corresponds to a band of the source, but has other values.
    if (spec.spectral && like != nullptr &&
        std::all_of(spec.bands.begin(), spec.bands.end(), [](const auto& b) { return b.like_band >= 0; }))
        for (const BandSpec& band : spec.bands)
            info["source_bands"].push_back(like->bands()[static_cast<size_t>(band.like_band)]);
    for (const BandSpec& band : spec.bands) {
        OrderedJson one{{"name", band.description}};
        if (!band.metadata.empty()) one["items"] = band.metadata;
        if (band.scale) one["scale"] = *band.scale;
        if (band.offset) one["offset"] = *band.offset;
        if (!band.unit.empty()) one["unit"] = band.unit;
        if (band.like_band >= 0 && like != nullptr)
            one["source_band"] = like->bands()[static_cast<size_t>(band.like_band)];
        info["bands"].push_back(std::move(one));
    }
    if (!spec.metadata.empty()) info["items"] = spec.metadata;
    if (!spec.categories.empty()) info["classes"] = spec.categories;
    if (!spec.colours.empty()) info["colours"] = spec.colours;
    return info;
}

void check_one(const OutputOptions& options, const OutputSpec& spec, SampleType type) {
    if (!spec.sample_type.empty()) throw Error("internal: samples are not copied into arrays");
    if (options.nodata && !fitting(*options.nodata, type)) {
        char text[32];
        std::snprintf(text, sizeof text, "%.17g", *options.nodata);
        throw UsageError(std::string("-dstnodata ") + text + " is not a value of the type " + name_of(type));
    }
    if (spec.categories.empty()) return;
    const auto largest = static_cast<double>(spec.categories.size() - 1);
    if (!fitting(largest, type))
        throw UsageError("-ot " + options.type + ": the type cannot store class " +
                             std::to_string(spec.categories.size() - 1),
                         "Leave -ot out to get a type that can store all classes.");
}

SourceNodata nodata_of(const RasterSource* like) {
    SourceNodata source;
    if (like == nullptr) return source;
    source.masked = like->facts().masked || arrays::Exchange::current().array(like->path()).mask != nullptr;
    if (const auto value = like->facts().bands.nodata) {
        NodataValue nodata;
        nodata.real = *value;
        source.values.push_back(nodata);
    }
    return source;
}

class ArraySink final : public RasterSink {
  public:
    explicit ArraySink(std::unique_ptr<PendingArray> output) : m(std::move(output)) {}

    stream::CubeShape shape() const override { return m->spec.shape; }
    std::optional<CubeView<float>> place_on(int device, const Rect& core) override;
    bool concurrent() const override { return true; }
    stream::BlockLayout layout() const override { return {}; }
    void write(const Rect& core, const CubeView<float>& src) override;
    bool takes_bands() const override { return true; }
    void write_band(int band, const Rect& core, const CubeView<float>& src) override;
    uint64_t stored_bytes_per_pixel() const override {
        return static_cast<uint64_t>(m->spec.shape.bands) * m->rule.sample_bytes();
    }
    void grow(int64_t) override {} // the size of an array is fixed
    bool raw_access() const override { return true; }
    uint64_t cache_bytes() const override { return 0; }
    std::string driver() const override { return "array"; }
    std::optional<double> nodata() const override {
        return m->nodata ? std::optional<double>(m->nodata->as_double()) : std::nullopt;
    }
    void commit() override;

  private:
    std::unique_ptr<PendingArray> m;
};

/// Stores a line of one band, whose samples are `step` bytes apart.
void store_row(const StoreRule& rule, const CubeView<float>& src, int band, int64_t line, char* to,
               int64_t step, std::vector<double>& scratch) {
    const size_t count = static_cast<size_t>(src.samples), bytes = rule.sample_bytes();
    if (step == static_cast<int64_t>(bytes) && reinterpret_cast<uintptr_t>(to) % bytes == 0)
        return rule.store_line(src, band, line, 0, count, to);
    scratch.resize(count);
    rule.store_line(src, band, line, 0, count, scratch.data());
    const auto* const from = reinterpret_cast<const char*>(scratch.data());
    for (size_t i = 0; i < count; ++i)
        std::memcpy(to + static_cast<int64_t>(i) * step, from + i * bytes, bytes);
}

std::optional<CubeView<float>> ArraySink::place_on(int device, const Rect& core) {
    if (m->array.device != device || !m->is_view()) return std::nullopt;
    const auto step = [](int64_t bytes) {
        return static_cast<ptrdiff_t>(bytes) / static_cast<ptrdiff_t>(sizeof(float));
    };
    return CubeView<float>(reinterpret_cast<float*>(PendingArray::at(m->array, 0, core.y, core.x)),
                           m->spec.shape.bands, core.h, core.w, step(m->array.strides[1]),
                           step(m->array.strides[0]));
}

void ArraySink::write(const Rect& core, const CubeView<float>& src) {
    const auto bytes = static_cast<int64_t>(m->rule.sample_bytes());
    const hsi_array& to = m->store();
    const auto& strides = to.strides;
    const bool pixels = src.bands > 1 && strides[0] == bytes && strides[2] == src.bands * bytes &&
                        reinterpret_cast<uintptr_t>(to.data) % static_cast<size_t>(bytes) == 0 &&
                        strides[1] % bytes == 0;
    StoreRule::Scratch scratch;
    std::vector<double> row;
    for (int64_t line = 0; line < core.h; ++line) {
        if (pixels) {
            m->rule.store_pixels(src, line, 0, static_cast<size_t>(core.w),
                                 PendingArray::at(to, 0, core.y + line, core.x), scratch);
            continue;
        }
        for (int band = 0; band < src.bands; ++band)
            store_row(m->rule, src, band, line, PendingArray::at(to, band, core.y + line, core.x), strides[2],
                      row);
    }
}

void ArraySink::write_band(int band, const Rect& core, const CubeView<float>& src) {
    const hsi_array& to = m->store();
    std::vector<double> row;
    for (int64_t line = 0; line < core.h; ++line)
        store_row(m->rule, src, 0, line, PendingArray::at(to, band, core.y + line, core.x), to.strides[2],
                  row);
}

void ArraySink::commit() {
    if (m->host.memory.data() != nullptr) arrays::copy_array(m->array.device, m->array, m->host.array);
    if (!m->options.run) return;
    for (const std::string& text : m->rule.tell(m->rule.lost()))
        m->options.run->warn(role_of(m->options) + ": " + text);
}

} // namespace

void check_output(const OutputOptions& options, const OutputSpec& spec) {
    const SampleType type = output_type(options, spec);
    check_one(options, spec, type);
    arrays::Exchange::current().describe(
        role_of(options),
        description(spec, type, choose_nodata(options, spec, SourceNodata(), type), nullptr));
}

void check_output(const OutputOptions& options, const OutputSpec& spec, const RasterSource&) {
    check_output(options, spec);
}

bool will_take_bands(const OutputOptions&, const OutputSpec& spec) { return spec.shape.bands > 1; }

std::unique_ptr<RasterSink> create_sink(const OutputOptions& options, const OutputSpec& spec,
                                        const RasterSource* like) {
    auto impl = std::make_unique<PendingArray>();
    impl->options = options;
    impl->spec = spec;
    impl->type = output_type(options, spec);
    check_one(options, spec, impl->type);
    impl->nodata = choose_nodata(options, spec, nodata_of(like), impl->type);
    impl->rule = StoreRule(impl->type, spec.keep_nan ? std::nullopt : impl->nodata);
    auto& exchange = arrays::Exchange::current();
    exchange.describe(role_of(options), description(spec, impl->type, impl->nodata, like));
    impl->array = exchange.make(role_of(options), spec.shape, static_cast<int32_t>(impl->type), impl->nodata);
    return std::make_unique<ArraySink>(std::move(impl));
}

// Arrays are never virtual.
bool is_virtual(const OutputOptions&) { return false; }
bool is_computed(const OutputOptions&) { return false; }
const char* virtual_kind(const OutputOptions&) { return "a VRT"; }
std::string compression_of(const OutputOptions&) { return {}; }
void check_virtual(const OutputOptions&, const OutputSpec&, const RasterSource&) {}
void write_virtual(const OutputOptions&, const OutputSpec&, const RasterSource&,
                   const std::vector<VirtualBand>&) {}
void write_virtual(const OutputOptions&, const OutputSpec&, const RasterSource&, const stream::Link&) {}

} // namespace hsi::raster
