// SPDX-License-Identifier: MIT
// raster::RasterSource of an array in memory, read in place. Rows of floats are used without conversion.
// Other types and missing values become floats in the same way as in files (raster/sample_convert.h).
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

/// The arguments of keep_on(), for all sources of one array.
struct Keeping {
    std::atomic<int> device{-1};
    std::atomic<int> threads{1};
};

/// The array and its memory, which belong to the caller.
struct ArrayState {
    hsi_array array;
    std::shared_ptr<const arrays::HostCopy> copy; ///< host copy of an array on a device; otherwise null
    std::shared_ptr<Keeping> keeping = std::make_shared<Keeping>();
    arrays::DeviceCopy held;
    std::string path;
    SampleType type = SampleType::unknown;
    /// 1-based selected bands of the array; with `parts`, each band once per part
    std::vector<int> bands;
    std::vector<SamplePart> parts; ///< part of the samples for each entry of `bands`; empty: whole samples
    SampleType part_type = SampleType::unknown; ///< type of the samples that are divided into bit parts
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
    /// Returns true if keep_on() has chosen a device that has a copy of the scene, or room for it.
    bool holds_copy() const {
        const int device = keeping->device;
        return device >= 0 && parts.empty() &&
               held.take(device, {window.w, window.h, static_cast<int>(bands.size())});
    }
    /// Returns the step between the selected bands; 0 if they are not evenly spaced.
    int band_step() const {
        const int step = bands.size() > 1 ? bands[1] - bands[0] : 1;
        for (size_t k = 1; k < bands.size(); ++k)
            if (bands[k] - bands[k - 1] != step) return 0;
        return step;
    }
    /// Returns true if the values are rows of floats that can be used in place.
    bool is_view() const {
        const auto whole = [](int64_t stride) { return stride % static_cast<int64_t>(sizeof(float)) == 0; };
        return type == SampleType::float32 && parts.empty() &&
               array.strides[2] == static_cast<int64_t>(sizeof(float)) &&
               reinterpret_cast<uintptr_t>(array.data) % alignof(float) == 0 && whole(array.strides[0]) &&
               whole(array.strides[1]) && band_step() != 0 && !match.active && array.mask == nullptr;
    }
    /// Returns a view of the values in place, if is_view(). Its memory is read-only.
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
    /// Returns scale and offset of the selected bands.
    BandValues values() const {
        BandValues values;
        for (const int b : bands) {
            values.scale.push_back(array.scales != nullptr ? array.scales[b - 1] : 1);
            values.offset.push_back(array.offsets != nullptr ? array.offsets[b - 1] : 0);
        }
        return values;
    }
    /// Returns the entry of `all` for each selected band; NaN where it is not positive, and an empty list if
    /// all are NaN.
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

constexpr size_t scratch_floats = 64 * 1024; ///< 256 KB, which fit in the second-level cache

/// Reads values of an array in its caller's layout, as floats band after band.
class ArrayReader final : public stream::CubeReader {
  public:
    explicit ArrayReader(std::shared_ptr<const ArrayState> source) : m(std::move(source)) {
        const hsi_array& a = m->array;
        m_view = m->is_view();
        if (m_view && a.device >= 0) return; // read() copies the values without conversion
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
    /// Chooses how values of `a`, an array in host memory, are read.
    void choose(const hsi_array& a) {
        m_strides = a.strides;
        const auto bytes = static_cast<int64_t>(arrays::type_bytes(a.type));
        const auto whole = [](int64_t stride) { return stride % static_cast<int64_t>(sizeof(float)) == 0; };
        m_floats = m->type == SampleType::float32 && m->parts.empty();
        m_rows = a.strides[2] == bytes;
        bool rising = true; // Each selected band follows the one before it in the array.
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

    /// Reads pixels whose bands are adjacent in memory, by transposing some pixels at a time.
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

    const std::shared_ptr<const ArrayState> m;
    bool m_view = false, m_floats = false, m_rows = false, m_pixels = false, m_aligned = false;
    const int64_t* m_strides = nullptr;
    std::vector<float> m_scratch;
    std::vector<float*> m_targets;
};

/// Returns a reader of the array in host memory, or of its host copy.
std::unique_ptr<stream::CubeReader> plain_reader(const std::shared_ptr<const ArrayState>& m) {
    std::unique_ptr<stream::CubeReader> reader = std::make_unique<ArrayReader>(m);
    const bool bits = !m->parts.empty() && m->parts[0] >= SamplePart::low_bits;
    if (m->type == SampleType::float64 && !bits)
        reader =
            reader_that_watches(std::move(reader), std::vector<bool>(m->bands.size(), true), m->infinity);
    if (m->scaled && (m->array.scales != nullptr || m->array.offsets != nullptr))
        reader = reader_of_meanings(std::move(reader), m->values());
    return m->counted ? stream::masked_reader(std::move(reader), m->counted) : std::move(reader);
}

/// Reads an array that has a copy on a device.
class CopiedReader final : public stream::CubeReader {
  public:
    explicit CopiedReader(std::shared_ptr<const ArrayState> source)
        : m(std::move(source)), m_reader(plain_reader(m)) {}
    void read(const Rect& window, const CubeView<float>& dst) override { m_reader->read(window, dst); }
    std::optional<CubeView<float>> view(const Rect& window) override { return m_reader->view(window); }
    std::optional<CubeView<float>> view_on(int device, const Rect& window) override {
        if (device != m->keeping->device) return std::nullopt;
        m->held.fill([this] { return plain_reader(m); }, m->keeping->threads);
        return m->held.view().cut(window.x, window.y, window.w, window.h);
    }

  private:
    const std::shared_ptr<const ArrayState> m;
    const std::unique_ptr<stream::CubeReader> m_reader;
};

/// Returns the bands of the array that the options select. The rules are the same as for files.
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
            notes.push_back("-exclude-range " + range.text + ": '" + options.path +
                            "' has no band in this range");
    std::erase_if(bands, [&](int b) { return range_around(options.excluded, nm(b)) != nullptr; });
    if (bands.empty()) throw Error("-exclude-range leaves no band of '" + options.path + "'");
    return bands;
}

SceneFacts facts_of(const ArrayState& s) {
    SceneFacts facts;
    facts.path = s.path;
    facts.driver = "array";
    facts.type = name_of(s.type);
    facts.exact_in_float = exact_in_float(s.type);
    facts.scaled = s.scaled;
    facts.masked = s.counted != nullptr;
    facts.notes = s.notes;
    BandFacts& bands = facts.bands;
    bands.numbers = bands.known_as = s.bands;
    bands.in_file = static_cast<int>(s.array.shape[0]);
    for (const int b : s.bands) {
        const char* const name =
            s.array.names != nullptr && b <= s.array.name_count ? s.array.names[b - 1] : nullptr;
        bands.names.push_back(name != nullptr && *name != 0 ? name : "Band " + std::to_string(b));
    }
    bands.wavelengths_nm = s.of_bands(s.array.wavelengths);
    bands.fwhm_nm = s.of_bands(s.array.widths);
    bands.nodata = s.nodata;
    const auto is = [](const std::vector<double>& all, double value) {
        return std::all_of(all.begin(), all.end(), [&](double v) { return v == value; });
    };
    if (const BandValues values = s.values(); !s.scaled && !(is(values.scale, 1) && is(values.offset, 0)))
        bands.values = values;
    if (s.array.unit != nullptr) bands.values.unit = s.array.unit;
    return facts;
}

/// Returns the array with each band divided into `parts`. `as`: see to_part().
ArrayState divided(const ArrayState& from, const std::vector<SamplePart>& parts, SampleType as) {
    ArrayState s = from;
    s.bands.clear();
    s.part_type = as;
    for (const int band : from.bands)
        for (const SamplePart part : parts) {
            s.bands.push_back(band);
            s.parts.push_back(part);
        }
    return s;
}

class ArraySource final : public RasterSource {
  public:
    explicit ArraySource(ArrayState state)
        : m(std::make_shared<const ArrayState>(std::move(state))), m_facts(facts_of(*m)) {}
    const SceneFacts& facts() const override { return m_facts; }

    stream::CubeShape shape() const override {
        return {m->window.w, m->window.h, static_cast<int>(m->bands.size())};
    }
    stream::BlockLayout layout() const override { return {}; }
    int device() const override {
        if (m->holds_copy()) return m->keeping->device;
        return m->is_view() && !m->scaled && !m->counted ? m->array.device : -1;
    }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        if (m->holds_copy()) return std::make_unique<CopiedReader>(m);
        return plain_reader(m);
    }
    uint64_t reader_bytes() const override {
        return m->counted ? stream::masked_reader_bytes(m->window.w) : 0;
    }
    uint64_t stored_bytes_per_pixel() const override {
        uint64_t bands = 0;
        for (size_t k = 0; k < m->bands.size(); ++k) // counts each band once: its parts are read together
            bands += m->parts.empty() || m->parts[k] == m->parts[0];
        return bands * sample_bytes(m->type);
    }
    void keep_on(const CudaDevice& device, int threads) const override {
        if (m->array.device >= 0) return;
        m->keeping->threads = threads;
        m->keeping->device = device.ordinal;
    }

    bool met_infinity() const override { return m->infinity->load(); }
    Beyond count_beyond_float() const override;
    std::vector<CoarseBand> coarse_bands() const override {
        if (m_facts.exact_in_float || !m->parts.empty()) return {};
        const auto bits = all_bits(SampleType::float64);
        return coarse_among(ArraySource(divided(*m, bits, SampleType::float64)), m->bands);
    }

    std::shared_ptr<RasterSource> with_bands(const std::vector<int>& indices) const override {
        ArrayState s = *m;
        s.bands.clear();
        for (const int k : indices)
            s.bands.push_back(m->bands[static_cast<size_t>(k)]);
        return std::make_shared<ArraySource>(std::move(s));
    }
    std::shared_ptr<RasterSource> with_mask(std::shared_ptr<const stream::PixelMask> mask) const override {
        ArrayState s = *m;
        s.counted = std::move(mask);
        return std::make_shared<ArraySource>(std::move(s));
    }
    std::shared_ptr<RasterSource> scaled() const override {
        ArrayState s = *m;
        s.scaled = true;
        return std::make_shared<ArraySource>(std::move(s));
    }
    std::shared_ptr<RasterSource> in_sums() const override {
        static_assert(stream::value_parts == 3);
        return std::make_shared<ArraySource>(
            divided(*m, {SamplePart::value, SamplePart::remainder, SamplePart::rest}, m->type));
    }
    std::shared_ptr<RasterSource> in_samples() const override {
        return std::make_shared<ArraySource>(divided(*m, all_bits(m->type), m->type));
    }

  private:
    const std::shared_ptr<const ArrayState> m;
    const SceneFacts m_facts;
};

RasterSource::Beyond ArraySource::count_beyond_float() const {
    constexpr double top = std::numeric_limits<float>::max();
    Beyond count;
    if (m->type != SampleType::float64) return count;
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

} // namespace

std::shared_ptr<RasterSource> open_raster(const OpenOptions& options) {
    ArrayState s;
    s.path = options.path;
    s.array = arrays::Exchange::current().array(options.path);
    s.copy = arrays::Exchange::current().host_copy(options.path);
    s.type = s.part_type = static_cast<SampleType>(s.array.type);
    s.window = {0, 0, s.array.shape[2], s.array.shape[1]};
    if (options.window) {
        if (options.window->empty() || !s.window.contains(*options.window))
            throw UsageError("-srcwin is not inside '" + options.path + "', which has " +
                             size_text(s.window.w, s.window.h) + " pixels");
        s.window = *options.window;
    }
    if (!options.bad_bands.empty())
        throw UsageError("-bbl: '" + options.path + "' is an array; bad-band lists are read only for files",
                         "Choose bands with b.");
    s.bands = chosen_bands(options, s.array, s.notes);
    s.nodata = options.nodata;
    if (!s.nodata && s.array.has_nodata != 0) s.nodata = s.array.nodata;
    if (s.nodata) {
        NodataValue value;
        value.real = *s.nodata;
        s.match = match_in_type(value, s.type);
    }
    return std::make_shared<ArraySource>(std::move(s));
}

std::optional<double> pixel_metres(const RasterSource&) { return std::nullopt; }
std::optional<GroundScale> ground_scale(const RasterSource&) { return std::nullopt; }
std::vector<double> pixel_areas(const RasterSource&) { return {}; }

} // namespace hsi::raster
