// SPDX-License-Identifier: MIT
// raster::RasterSource of an array in memory: read where it lies. Rows of floats are taken as they are; other
// types, and values that stand for none, become floats as those of files do (raster/sample_convert.h).
#include "arrays/exchange.h"

#include "core/counted.h"
#include "core/error.h"
#include "raster/pixel_size.h"
#include "raster/raster_source.h"
#include "raster/sample_convert.h"
#include "raster/scene/reader_steps.h"
#include "stream/pixel_mask.h"
#include "stream/value_parts.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace hsi::raster {

namespace {

/// What keep_on() was told, for all sources of one array.
struct Keeping {
    std::atomic<int> device{-1};
    std::atomic<int> threads{1};
};

} // namespace

/// What a source knows; the array and all that it points to are the caller's.
struct RasterSource::Impl {
    hsi_array array;
    std::shared_ptr<const arrays::HostCopy> copy; ///< of an array on a device
    std::shared_ptr<Keeping> keeping = std::make_shared<Keeping>();
    arrays::DeviceCopy held;
    std::string path;
    GDALDataType type = GDT_Unknown;
    std::vector<int> bands;               ///< of the array, 1-based; with parts each several times
    std::vector<SamplePart> parts;        ///< of each of `bands`; empty: values
    GDALDataType part_type = GDT_Unknown; ///< whose bits parts are
    Rect window;
    std::optional<double> nodata;
    NodataMatch match;
    bool scaled = false;
    std::shared_ptr<const stream::PixelMask> counted;
    std::shared_ptr<std::atomic<bool>> infinity = std::make_shared<std::atomic<bool>>(false);
    std::vector<std::string> notes;

    const char* at(int band, int64_t line, int64_t sample) const {
        return at(copy ? copy->array() : array, band, line, sample);
    }
    const char* at(const hsi_array& a, int band, int64_t line, int64_t sample) const {
        return static_cast<const char*>(a.data) + (band - 1) * a.strides[0] +
               (window.y + line) * a.strides[1] + (window.x + sample) * a.strides[2];
    }
    /// Whether a device has a copy, or a place for it.
    bool holds_copy() const {
        const int device = keeping->device;
        return device >= 0 && parts.empty() &&
               held.take(device, {window.w, window.h, static_cast<int>(bands.size())});
    }
    /// Bands from one kept band to the next of evenly spaced ones; 0: they are not.
    int band_step() const {
        const int step = bands.size() > 1 ? bands[1] - bands[0] : 1;
        for (size_t k = 1; k < bands.size(); ++k)
            if (bands[k] - bands[k - 1] != step) return 0;
        return step;
    }
    /// Whether the values are rows of floats that need nothing but to be taken where they lie.
    bool is_view() const {
        const auto whole = [](int64_t stride) { return stride % static_cast<int64_t>(sizeof(float)) == 0; };
        return type == GDT_Float32 && parts.empty() &&
               array.strides[2] == static_cast<int64_t>(sizeof(float)) &&
               reinterpret_cast<uintptr_t>(array.data) % alignof(float) == 0 && whole(array.strides[0]) &&
               whole(array.strides[1]) && band_step() != 0 && !match.active && array.mask == nullptr;
    }
    /// That view; of memory which nobody may write.
    CubeView<float> view(const Rect& part) const {
        const auto step = [](int64_t bytes) {
            return static_cast<ptrdiff_t>(bytes) / static_cast<ptrdiff_t>(sizeof(float));
        };
        auto* const first = reinterpret_cast<float*>(const_cast<char*>(at(array, bands[0], part.y, part.x)));
        return CubeView<float>(first, static_cast<int>(bands.size()), part.h, part.w, step(array.strides[1]),
                               step(band_step() * array.strides[0]));
    }
    bool has_value(int64_t line, int64_t sample) const {
        return static_cast<const unsigned char*>(array.mask)[(window.y + line) * array.mask_strides[0] +
                                                             (window.x + sample) * array.mask_strides[1]] !=
               0;
    }
    /// One number a kept band; NaN where unknown, empty when no band has one.
    std::vector<double> of_bands(const double* all) const {
        std::vector<double> out;
        if (all == nullptr) return out;
        for (const int b : bands)
            out.push_back(all[b - 1] > 0 ? all[b - 1] : std::numeric_limits<double>::quiet_NaN());
        return std::all_of(out.begin(), out.end(), [](double v) { return std::isnan(v); })
                   ? std::vector<double>()
                   : out;
    }
};

namespace {

constexpr size_t scratch_floats = 64 * 1024; ///< stay in the second-level cache

/// Values of an array as its caller has laid them, as floats band after band.
template <class Impl>
class ArrayReader final : public stream::CubeReader {
  public:
    explicit ArrayReader(std::shared_ptr<const Impl> source) : m(std::move(source)) {
        const hsi_array& a = m->array;
        m_view = m->is_view();
        if (m_view && a.device >= 0) return; // nothing else is asked for
        choose(m->copy ? m->copy->array() : a);
    }

    std::optional<CubeView<float>> view(const Rect& window) override {
        if (!m_view || m->array.device >= 0) return std::nullopt;
        return m->view(window);
    }

    std::optional<CubeView<float>> view_on(int device, const Rect& window) override {
        if (!m_view || m->array.device != device) return std::nullopt;
        return m->view(window);
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        if (m_view && m->array.device >= 0)
            return arrays::copy_to_host(m->array.device, dst, m->view(window));
        if (m_pixels)
            read_pixels(window, dst);
        else
            read_rows(window, dst);
        if (m->array.mask != nullptr) apply_mask(window, dst);
    }

  private:
    /// How the values of this array in host memory are read.
    void choose(const hsi_array& a) {
        m_strides = a.strides;
        const auto bytes = static_cast<int64_t>(arrays::type_bytes(a.type));
        const auto whole = [](int64_t stride) { return stride % static_cast<int64_t>(sizeof(float)) == 0; };
        m_floats = m->type == GDT_Float32 && m->parts.empty();
        m_rows = a.strides[2] == bytes;
        bool rising = true; // neighbours in the array
        for (size_t k = 1; k < m->bands.size(); ++k)
            rising = rising && m->bands[k] == m->bands[k - 1] + 1;
        m_pixels = !m_rows && a.strides[0] == bytes && rising && m->parts.empty();
        m_aligned = reinterpret_cast<uintptr_t>(a.data) % alignof(float) == 0 && whole(a.strides[0]) &&
                    whole(a.strides[1]) && whole(a.strides[2]);
    }

    void read_rows(const Rect& window, const CubeView<float>& dst) const {
        const auto count = static_cast<size_t>(window.w);
        const auto stride = static_cast<ptrdiff_t>(m_strides[2]);
        for (int k = 0; k < dst.bands; ++k)
            for (int64_t line = 0; line < window.h; ++line) {
                const char* const from = m->at(m->bands[static_cast<size_t>(k)], window.y + line, window.x);
                float* const to = dst.row(k, line);
                if (m_floats && m_rows) {
                    std::memcpy(to, from, count * sizeof(float));
                    blank(to, count, m->match, m->type);
                } else {
                    to_part(m->parts.empty() ? SamplePart::value : m->parts[static_cast<size_t>(k)], from,
                            stride, m->type, false, m->match, m->part_type, to, count);
                }
            }
    }

    /// The bands of a pixel lie side by side: some pixels at a time are turned around.
    void read_pixels(const Rect& window, const CubeView<float>& dst) {
        const auto bands = static_cast<size_t>(dst.bands);
        const auto step = static_cast<ptrdiff_t>(m_strides[2]);
        const auto bytes = static_cast<ptrdiff_t>(arrays::type_bytes(m->array.type));
        const bool as_is = m_floats && m_aligned && !m->match.active && step > 0;
        const size_t across = static_cast<size_t>(window.w),
                     chunk = std::clamp<size_t>(scratch_floats / bands, 1, across);
        if (!as_is) m_scratch.resize(chunk * bands);
        m_targets.resize(bands);
        for (int64_t line = 0; line < window.h; ++line)
            for (size_t x = 0; x < across; x += chunk) {
                const size_t n = std::min(chunk, across - x);
                const char* const from =
                    m->at(m->bands[0], window.y + line, window.x + static_cast<int64_t>(x));
                const auto* values = reinterpret_cast<const float*>(from);
                size_t pixel = static_cast<size_t>(step) / sizeof(float);
                if (!as_is) {
                    for (size_t i = 0; i < n; ++i)
                        to_floats(from + static_cast<ptrdiff_t>(i) * step, bytes, m->type, false, m->match,
                                  m_scratch.data() + i * bands, bands);
                    values = m_scratch.data();
                    pixel = bands;
                }
                for (size_t k = 0; k < bands; ++k)
                    m_targets[k] = dst.row(static_cast<int>(k), line) + x;
                pixels_to_rows(values, pixel, bands, n, m_targets.data());
            }
    }

    void apply_mask(const Rect& window, const CubeView<float>& dst) const {
        for (int64_t line = 0; line < window.h; ++line)
            for (int64_t x = 0; x < window.w; ++x) {
                if (m->has_value(window.y + line, window.x + x)) continue;
                for (int k = 0; k < dst.bands; ++k)
                    dst.row(k, line)[x] = std::numeric_limits<float>::quiet_NaN();
            }
    }

    const std::shared_ptr<const Impl> m;
    bool m_view = false, m_floats = false, m_rows = false, m_pixels = false, m_aligned = false;
    const int64_t* m_strides = nullptr;
    std::vector<float> m_scratch;
    std::vector<float*> m_targets;
};

/// One that reads the array in host memory, or what the caller has of it there.
template <class Impl>
std::unique_ptr<stream::CubeReader> plain_reader(const std::shared_ptr<const Impl>& m) {
    std::unique_ptr<stream::CubeReader> reader = std::make_unique<ArrayReader<Impl>>(m);
    const bool bits = !m->parts.empty() && m->parts[0] >= SamplePart::low_bits;
    if (m->type == GDT_Float64 && !bits)
        reader =
            reader_that_watches(std::move(reader), std::vector<bool>(m->bands.size(), true), m->infinity);
    if (m->scaled) {
        BandValues values;
        for (const int b : m->bands) {
            if (m->array.scales == nullptr && m->array.offsets == nullptr) break;
            values.scale.push_back(m->array.scales != nullptr ? m->array.scales[b - 1] : 1);
            values.offset.push_back(m->array.offsets != nullptr ? m->array.offsets[b - 1] : 0);
        }
        reader = reader_of_meanings(std::move(reader), std::move(values));
    }
    return m->counted ? stream::masked_reader(std::move(reader), m->counted) : std::move(reader);
}

/// The same, of which a device has a copy.
template <class Impl>
class CopiedReader final : public stream::CubeReader {
  public:
    explicit CopiedReader(std::shared_ptr<const Impl> source)
        : m(std::move(source)), m_reader(plain_reader(m)) {}
    void read(const Rect& window, const CubeView<float>& dst) override { m_reader->read(window, dst); }
    std::optional<CubeView<float>> view(const Rect& window) override { return m_reader->view(window); }
    std::optional<CubeView<float>> view_on(int device, const Rect& window) override {
        if (device != m->keeping->device) return std::nullopt;
        m->held.fill([this] { return plain_reader(m); }, m->keeping->threads);
        return m->held.view().cut(window.x, window.y, window.w, window.h);
    }

  private:
    const std::shared_ptr<const Impl> m;
    const std::unique_ptr<stream::CubeReader> m_reader;
};

/// The bands of the array that the options name, as those of a file.
std::vector<int> chosen_bands(const OpenOptions& options, const hsi_array& array,
                              std::vector<std::string>& notes) {
    const auto count = static_cast<int>(array.shape[0]);
    const auto nm = [&](int b) {
        return array.wavelengths != nullptr ? array.wavelengths[b - 1]
                                            : std::numeric_limits<double>::quiet_NaN();
    };
    std::vector<int> bands = options.bands;
    for (const int b : bands)
        if (b > count)
            throw UsageError("-b " + std::to_string(b) + ": '" + options.path + "' has bands 1 to " +
                             std::to_string(count));
    if (!options.choices.empty()) {
        std::vector<BandAt> all;
        for (int b = 1; b <= count; ++b)
            all.push_back({b, nm(b), true});
        bands = bands_of(options.choices, all, "'" + options.path + "'");
    }
    if (bands.empty())
        for (int b = 1; b <= count; ++b)
            bands.push_back(b);
    if (options.excluded.empty()) return bands;
    if (array.wavelengths == nullptr)
        throw Error("-exclude-range " + options.excluded.front().text + ": '" + options.path +
                        "' has no wavelengths",
                    "Choose bands by number with -b.");
    for (const BandChoice& range : options.excluded)
        if (std::none_of(bands.begin(), bands.end(),
                         [&](int b) { return range_around({range}, nm(b)) != nullptr; }))
            notes.push_back("-exclude-range " + range.text + ": no band of '" + options.path +
                            "' lies there");
    std::erase_if(bands, [&](int b) { return range_around(options.excluded, nm(b)) != nullptr; });
    if (bands.empty()) throw Error("-exclude-range leaves no band of '" + options.path + "'");
    return bands;
}

} // namespace

RasterSource::RasterSource(std::shared_ptr<const Impl> impl) : m(std::move(impl)) {}
RasterSource::~RasterSource() = default;

std::shared_ptr<RasterSource> RasterSource::open(const OpenOptions& options) {
    auto s = std::make_shared<Impl>();
    s->path = options.path;
    s->array = arrays::Exchange::current().array(options.path);
    s->copy = arrays::Exchange::current().host_copy(options.path);
    s->type = s->part_type = static_cast<GDALDataType>(s->array.type);
    s->window = {0, 0, s->array.shape[2], s->array.shape[1]};
    if (options.window) {
        if (options.window->empty() || !s->window.contains(*options.window))
            throw UsageError("-srcwin does not lie inside '" + options.path + "', which has " +
                             size_text(s->window.w, s->window.h) + " pixels");
        s->window = *options.window;
    }
    s->bands = chosen_bands(options, s->array, s->notes);
    s->nodata = options.nodata;
    if (!s->nodata && s->array.has_nodata != 0) s->nodata = s->array.nodata;
    if (s->nodata) {
        NodataValue value;
        value.real = *s->nodata;
        s->match = match_in_type(value, s->type);
    }
    return std::shared_ptr<RasterSource>(new RasterSource(std::move(s)));
}

stream::CubeShape RasterSource::shape() const {
    return {m->window.w, m->window.h, static_cast<int>(m->bands.size())};
}
stream::BlockLayout RasterSource::layout() const { return {}; }
int RasterSource::device() const {
    if (m->holds_copy()) return m->keeping->device;
    return m->is_view() && !m->scaled && !m->counted ? m->array.device : -1;
}

std::unique_ptr<stream::CubeReader> RasterSource::open_reader() const {
    if (m->holds_copy()) return std::make_unique<CopiedReader<Impl>>(m);
    return plain_reader(m);
}

void RasterSource::keep_on(const CudaDevice& device, int threads) const {
    if (m->array.device >= 0) return;
    m->keeping->threads = threads;
    m->keeping->device = device.ordinal;
}

uint64_t RasterSource::stored_bytes_per_pixel() const {
    uint64_t bands = 0;
    for (size_t k = 0; k < m->bands.size(); ++k) // parts of one band are read together
        bands += m->parts.empty() || m->parts[k] == m->parts[0];
    return bands * static_cast<uint64_t>(arrays::type_bytes(m->array.type));
}
std::string RasterSource::compression() const { return {}; }
uint64_t RasterSource::reader_bytes() const {
    return m->counted ? stream::masked_reader_bytes(m->window.w) : 0;
}

uint64_t RasterSource::window_bytes(int64_t, int64_t) const { return 0; }
std::vector<RasterSource::ChainLink> RasterSource::chain() const { return {}; }
int RasterSource::computes_on() const { return -1; }
uint64_t RasterSource::device_bytes(int64_t, int64_t) const { return 0; }
void RasterSource::compute_links_on(const std::vector<CudaDevice>&) const {}
std::string RasterSource::chain_source() const { return path(); }

const std::string& RasterSource::path() const { return m->path; }
const std::string& RasterSource::driver() const {
    static const std::string name = "array";
    return name;
}
std::string RasterSource::product() const { return {}; }
std::string RasterSource::type_name() const { return arrays::type_name(m->array.type); }
bool RasterSource::raw_access() const { return true; }
bool RasterSource::held_by_system() const { return true; }
bool RasterSource::is_remote() const { return false; }
void RasterSource::end_with(const CancelFlag* /*cancel*/) const {}
void RasterSource::check_unchanged() const {}
bool RasterSource::decodes_chunks() const { return false; }
const char* RasterSource::access() const { return "raw"; }
uint64_t RasterSource::take_memory(uint64_t, int) const { return 0; }
uint64_t RasterSource::shared_block_bytes() const { return 0; }
uint64_t RasterSource::cache_bytes() const { return 0; }
const std::vector<int>& RasterSource::bands() const { return m->bands; }
std::vector<int> RasterSource::band_numbers() const { return m->bands; }
bool RasterSource::tells_band_numbers() const { return false; }
int RasterSource::file_bands() const { return static_cast<int>(m->array.shape[0]); }
std::vector<int> RasterSource::bad_bands() const { return {}; }
std::vector<int> RasterSource::marked_bands() const { return {}; }

std::vector<std::string> RasterSource::band_names() const {
    std::vector<std::string> names;
    for (const int b : m->bands) {
        const char* const name =
            m->array.names != nullptr && b <= m->array.name_count ? m->array.names[b - 1] : nullptr;
        names.push_back(name != nullptr && *name != 0 ? name : "Band " + std::to_string(b));
    }
    return names;
}

std::vector<double> RasterSource::wavelengths_nm() const { return m->of_bands(m->array.wavelengths); }
std::vector<double> RasterSource::fwhm_nm() const { return m->of_bands(m->array.widths); }

BandValues RasterSource::band_values() const {
    BandValues values;
    if (m->array.unit != nullptr) values.unit = m->array.unit;
    if (m->scaled) return values;
    bool any = false;
    for (const int b : m->bands) {
        values.scale.push_back(m->array.scales != nullptr ? m->array.scales[b - 1] : 1);
        values.offset.push_back(m->array.offsets != nullptr ? m->array.offsets[b - 1] : 0);
        any = any || values.scale.back() != 1 || values.offset.back() != 0;
    }
    if (!any) {
        values.scale.clear();
        values.offset.clear();
    }
    return values;
}

std::vector<std::string> RasterSource::notes() const { return m->notes; }
std::vector<std::string> RasterSource::band_items(const char*) const {
    return std::vector<std::string>(m->bands.size());
}
bool RasterSource::grows() const { return false; } // an array is there
int64_t RasterSource::wait_for_lines(int64_t) const { return m->window.h; }
std::optional<int64_t> RasterSource::promised_lines() const { return m->window.h; }
std::shared_ptr<RasterSource> RasterSource::grown_to(int64_t) const {
    return std::shared_ptr<RasterSource>(new RasterSource(m));
}
std::string RasterSource::incomplete_line() const { return {}; }
std::string RasterSource::lost_header() const { return {}; }
bool RasterSource::ends_with_zeros(int64_t) const { return false; }
std::vector<std::string> RasterSource::late_fields() const { return {}; }
std::vector<std::string> RasterSource::growing_files() const { return {}; }

bool RasterSource::met_infinity() const { return m->infinity->load(); }

RasterSource::Beyond RasterSource::count_beyond_float() const {
    constexpr double top = std::numeric_limits<float>::max();
    Beyond count;
    if (m->type != GDT_Float64) return count;
    for (int64_t line = 0; line < m->window.h; ++line)
        for (int64_t sample = 0; sample < m->window.w; ++sample) {
            if (m->array.mask != nullptr && !m->has_value(line, sample)) continue;
            bool met = false;
            for (const int b : m->bands) {
                double v;
                std::memcpy(&v, m->at(b, line, sample), sizeof v);
                if (!std::isfinite(v) || std::fabs(v) <= top || (m->nodata && v == *m->nodata)) continue;
                ++count.values;
                met = true;
            }
            count.pixels += met;
        }
    return count;
}

std::optional<double> RasterSource::nodata() const { return m->nodata; }
bool RasterSource::has_srs() const { return false; }
std::string RasterSource::srs_wkt() const { return {}; }
std::string RasterSource::srs_name() const { return {}; }
int RasterSource::epsg() const { return 0; }
bool RasterSource::geotransform(double (&)[6]) const { return false; }
bool RasterSource::located() const { return false; }

std::shared_ptr<RasterSource> RasterSource::without_bands(const std::vector<int>& indices) const {
    std::vector<int> others;
    for (int k = 0; k < static_cast<int>(m->bands.size()); ++k)
        if (std::find(indices.begin(), indices.end(), k) == indices.end()) others.push_back(k);
    if (others.empty())
        throw Error("no band of '" + m->path + "' is left", "Every band has been found empty.");
    return with_bands(others);
}

std::shared_ptr<RasterSource> RasterSource::with_bands(const std::vector<int>& indices) const {
    auto s = std::make_shared<Impl>(*m);
    s->bands.clear();
    for (const int k : indices)
        s->bands.push_back(m->bands[static_cast<size_t>(k)]);
    return std::shared_ptr<RasterSource>(new RasterSource(std::move(s)));
}

std::shared_ptr<RasterSource> RasterSource::with_mask(std::shared_ptr<const stream::PixelMask> mask) const {
    auto s = std::make_shared<Impl>(*m);
    s->counted = std::move(mask);
    return std::shared_ptr<RasterSource>(new RasterSource(std::move(s)));
}
bool RasterSource::has_mask() const { return m->counted != nullptr; }

std::shared_ptr<RasterSource> RasterSource::scaled() const {
    auto s = std::make_shared<Impl>(*m);
    s->scaled = true;
    return std::shared_ptr<RasterSource>(new RasterSource(std::move(s)));
}
bool RasterSource::is_scaled() const { return m->scaled; }

bool RasterSource::exact_in_float() const { return raster::exact_in_float(m->type); }

namespace {

/// Every band as these parts.
template <class Impl>
std::shared_ptr<Impl> divided(const Impl& from, const std::vector<SamplePart>& parts, GDALDataType as) {
    auto s = std::make_shared<Impl>(from);
    s->bands.clear();
    s->part_type = as;
    for (const int band : from.bands)
        for (const SamplePart part : parts) {
            s->bands.push_back(band);
            s->parts.push_back(part);
        }
    return s;
}

} // namespace

std::shared_ptr<RasterSource> RasterSource::in_sums() const {
    static_assert(stream::value_parts == 3);
    return std::shared_ptr<RasterSource>(
        new RasterSource(divided(*m, {SamplePart::value, SamplePart::remainder, SamplePart::rest}, m->type)));
}

std::shared_ptr<RasterSource> RasterSource::in_samples() const {
    return std::shared_ptr<RasterSource>(new RasterSource(divided(*m, all_bits(m->type), m->type)));
}

std::vector<RasterSource::CoarseBand> RasterSource::coarse_bands() const {
    if (exact_in_float() || !m->parts.empty()) return {};
    const RasterSource bits(divided(*m, all_bits(GDT_Float64), GDT_Float64));
    return coarse_among(bits, m->bands);
}

std::optional<double> pixel_metres(const RasterSource&) { return std::nullopt; }

} // namespace hsi::raster
