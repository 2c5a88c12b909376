// SPDX-License-Identifier: MIT
#include "stream/value_range.h"

#include "core/byte_pack.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace hsi::stream {
namespace {

constexpr int64_t wanted_pixels = 4096;
enum Seen : uint8_t { unseen, seen, seen_valid, seen_far_outside };
constexpr float infinity = std::numeric_limits<float>::infinity();

} // namespace

struct RangeWatch::Limits {
    std::vector<float> least, greatest, faint; ///< infinite for bands without a known range
    int varying = 0;                           ///< bands with a minimum and a maximum
    bool amounts = false; ///< true: at least half of the bands have a level, from which `faint` was computed
    bool tell_nothing = false; ///< true: there is no range to compare with

    explicit Limits(const ValueRange& known, size_t bands)
        : least(bands, -infinity), greatest(bands, infinity), faint(bands, infinity) {
        tell_nothing = known.minimum.empty();
        size_t levels = 0;
        for (size_t b = 0; b < known.minimum.size(); ++b) {
            const double low = known.minimum[b], high = known.maximum[b], width = high - low;
            if (width > 0) {
                least[b] = static_cast<float>(low - width);
                greatest[b] = static_cast<float>(high + width);
                ++varying;
            }
            // Old models have no means: the end of the range nearer to 0 is a cautious replacement.
            const double nearest = low > 0 ? low : high < 0 ? -high : 0;
            const double level = known.mean.empty() ? nearest : std::fabs(known.mean[b]);
            if (level > 0 && level > width / 100) {
                faint[b] = static_cast<float>(level / 20);
                ++levels;
            }
        }
        amounts = levels > 0 && 2 * levels >= bands;
    }
};

class RangeWatch::Reader final : public CubeReader {
  public:
    explicit Reader(const RangeWatch& owner)
        : m_owner(owner), m_reader(owner.m_from.open_reader()),
          m_minimum(static_cast<size_t>(owner.shape().bands), infinity),
          m_maximum(static_cast<size_t>(owner.shape().bands), -infinity) {}

    ~Reader() override {
        if (m_valid == 0) return;
        const std::lock_guard lock(m_owner.m_mutex);
        m_owner.m_valid += m_valid;
        m_owner.m_far_outside += m_far_outside;
        m_owner.m_minimum.resize(m_minimum.size(), infinity);
        m_owner.m_maximum.resize(m_maximum.size(), -infinity);
        for (size_t b = 0; b < m_minimum.size(); ++b) {
            m_owner.m_minimum[b] = std::min(m_owner.m_minimum[b], m_minimum[b]);
            m_owner.m_maximum[b] = std::max(m_owner.m_maximum[b], m_maximum[b]);
        }
    }

    void read(const Rect& window, const CubeView<float>& dst) override {
        m_reader->read(window, dst);
        look_around(window, [&](int64_t y) { look_at(dst, y - window.y); });
    }
    /// Only the lines of the grid are read from a tile in a device's memory.
    std::optional<CubeView<float>> view_on(int device, const Rect& window) override {
        auto there = m_reader->view_on(device, window);
        if (!there) return there;
        if (found_on_device(window, *there)) return there;
        m_line.resize(m_minimum.size() * static_cast<size_t>(window.w));
        const auto line = CubeView<float>::packed(m_line.data(), there->bands, 1, window.w);
        look_around(window, [&](int64_t y) {
            m_reader->read({window.x, y, window.w, 1}, line);
            look_at(line, 0);
        });
        return there;
    }
    void prefetch(const Rect& window) override { m_reader->prefetch(window); }
    bool expect(const Rect& window) override { return m_reader->expect(window); }
    uint64_t look_ahead(uint64_t bytes, int threads) override { return m_reader->look_ahead(bytes, threads); }

  private:
    /// Examines the whole grid at once on the device, if possible.
    bool found_on_device(const Rect& window, const CubeView<float>& there) {
        const CubeShape shape = m_owner.shape();
        if (!m_owner.m_find || !m_owner.m_limits->tell_nothing || window.area() != shape.pixels())
            return false;
        std::vector<float> low(m_minimum.size()), high(m_minimum.size());
        const int64_t valid = m_owner.m_find(there, m_owner.m_first, m_owner.m_step, low.data(), high.data());
        if (valid < 0) return false;
        m_valid += valid;
        for (size_t b = 0; b < low.size(); ++b) {
            m_minimum[b] = std::min(m_minimum[b], low[b]);
            m_maximum[b] = std::max(m_maximum[b], high[b]);
        }
        return true;
    }
    /// Calls look(y) for every line of a window that has pixels of the grid which were not seen before.
    /// m_places contains the samples of these pixels, counted within the window.
    template <class Look>
    void look_around(const Rect& window, const Look& look) {
        const int64_t step = m_owner.m_step, first = m_owner.m_first;
        const auto next = [&](int64_t from) { // the first index of the grid at `from` or after it
            return from <= first ? first : first + (from - first + step - 1) / step * step;
        };
        for (int64_t y = next(window.y); y < window.bottom(); y += step) {
            m_places.clear();
            m_indices.clear();
            for (int64_t x = next(window.x); x < window.right(); x += step) {
                const int64_t index = (y - first) / step * m_owner.m_across + (x - first) / step;
                if (m_owner.m_seen[static_cast<size_t>(index)].exchange(seen, std::memory_order_relaxed) ==
                    unseen) {
                    m_places.push_back(x - window.x);
                    m_indices.push_back(static_cast<size_t>(index));
                }
            }
            if (!m_places.empty()) look(y);
        }
    }
    /// Examines the pixels at m_places of a line.
    void look_at(const CubeView<float>& tile, int64_t line) {
        const size_t count = m_places.size(), bands = m_minimum.size();
        const Limits& limits = *m_owner.m_limits;
        m_pixels.start(count);
        m_faint.assign(count, 1);
        m_outside.assign(count, 0);
        for (size_t b = 0; b < bands; ++b) {
            const float* const values = values_of(tile, b, line);
            m_pixels.look(values);
            if (!limits.tell_nothing)
                compare(values, limits.least[b], limits.greatest[b], limits.faint[b], m_faint.data(),
                        m_outside.data(), count);
        }
        m_valid += m_pixels.judge();
        m_blanks.assign(count, 0);
        for (size_t i = 0; i < count; ++i) {
            if (!m_pixels.is_valid(i)) {
                m_blanks[i] = std::numeric_limits<float>::quiet_NaN();
                continue;
            }
            const bool outside = !limits.tell_nothing &&
                                 (2 * m_outside[i] > limits.varying || (limits.amounts && m_faint[i] != 0));
            m_far_outside += outside ? 1 : 0;
            m_owner.m_seen[m_indices[i]].store(outside ? seen_far_outside : seen_valid,
                                               std::memory_order_relaxed);
        }
        for (size_t b = 0; b < bands; ++b)
            widen(values_of(tile, b, line), m_blanks.data(), count, m_minimum[b], m_maximum[b]);
    }
    /// Returns a band's values at m_places, in place if they are contiguous.
    const float* values_of(const CubeView<float>& tile, size_t band, int64_t line) {
        const float* const row = tile.row(static_cast<int>(band), line);
        const size_t count = m_places.size();
        if (m_places.back() - m_places.front() + 1 == static_cast<int64_t>(count))
            return row + m_places.front();
        m_values.resize(count);
        for (size_t i = 0; i < count; ++i)
            m_values[i] = row[m_places[i]];
        return m_values.data();
    }
    static void compare(const float* __restrict values, float least, float greatest, float below,
                        int32_t* __restrict faint, int32_t* __restrict outside, size_t count) {
        for (size_t i = 0; i < count; ++i) {
            const float v = values[i];
            faint[i] &= static_cast<int32_t>(std::fabs(v) < below);
            outside[i] += static_cast<int32_t>(v < least) + static_cast<int32_t>(v > greatest);
        }
    }
    /// `blanks` makes missing values NaN, which is neither less nor greater, and changes -0 to 0, since both
    /// are the same value.
    static void widen(const float* values, const float* blanks, size_t count, float& minimum,
                      float& maximum) {
        constexpr size_t width = 16; // independent values, so that a compiler vectorises
        float low[width], high[width];
        std::fill_n(low, width, minimum);
        std::fill_n(high, width, maximum);
        const auto take = [&](size_t k, float v) {
            low[k] = v < low[k] ? v : low[k];
            high[k] = v > high[k] ? v : high[k];
        };
        const size_t whole = count / width * width;
        for (size_t i = 0; i < whole; i += width)
            for (size_t k = 0; k < width; ++k)
                take(k, values[i + k] + blanks[i + k]);
        for (size_t i = whole; i < count; ++i)
            take(i - whole, values[i] + blanks[i]);
        minimum = *std::min_element(low, low + width);
        maximum = *std::max_element(high, high + width);
    }

    const RangeWatch& m_owner;
    std::unique_ptr<CubeReader> m_reader;
    std::vector<int64_t> m_places;
    std::vector<size_t> m_indices; ///< indices in the grid of the pixels at m_places
    std::vector<float> m_line;     ///< one line, read from a scene on a device
    std::vector<float> m_values;   ///< values of one band at m_places
    std::vector<float> m_blanks;   ///< one per place: 0 for a valid pixel, NaN for an invalid one
    PixelRow m_pixels;
    std::vector<int32_t> m_faint, m_outside;
    int64_t m_valid = 0, m_far_outside = 0;
    std::vector<float> m_minimum, m_maximum;
};

RangeWatch::RangeWatch(const CubeSource& from, ValueRange known)
    : m_from(from), m_limits(std::make_unique<const Limits>(known, static_cast<size_t>(from.shape().bands))) {
    const CubeShape shape = from.shape();
    while ((shape.samples / (m_step + 1)) * (shape.lines / (m_step + 1)) >= wanted_pixels)
        ++m_step;
    m_first = m_step / 2;
    const auto places = [&](int64_t size) {
        return size > m_first ? (size - m_first + m_step - 1) / m_step : 0;
    };
    m_across = places(shape.samples);
    m_seen = std::vector<std::atomic<uint8_t>>(static_cast<size_t>(m_across * places(shape.lines)));
}

RangeWatch::~RangeWatch() = default;

void RangeWatch::look() const {
    const CubeShape size = shape();
    Reader reader(*this);
    std::vector<float> values(static_cast<size_t>(size.samples * size.bands));
    const auto line = CubeView<float>::packed(values.data(), size.bands, 1, size.samples);
    for (int64_t y = m_first; y < size.lines; y += m_step)
        reader.read({0, y, size.samples, 1}, line);
}

void RangeWatch::exchange(parallel::Group& ranks) const {
    if (!ranks.several()) return;
    const size_t bands = static_cast<size_t>(shape().bands);
    std::vector<uint8_t> grid(m_seen.begin(), m_seen.end());
    m_minimum.resize(bands, infinity);
    m_maximum.resize(bands, -infinity);
    const auto packed = [](const std::vector<uint8_t>& g, const std::vector<float>& low,
                           const std::vector<float>& high) {
        return BytePacker().put(g).put(low).put(high).take();
    };
    // If two ranks have seen a pixel, both have found the same. The greater value of Seen contains more
    // information.
    const std::string whole = ranks.reduce(
        "values", packed(grid, m_minimum, m_maximum), [&](const std::string& a, const std::string& b) {
            ByteUnpacker one(a), other(b);
            std::vector<uint8_t> g, h;
            one.get(g);
            other.get(h);
            std::transform(g.begin(), g.end(), h.begin(), g.begin(),
                           [](uint8_t p, uint8_t q) { return std::max(p, q); });
            std::vector<float> low, high, l, h2;
            one.get(low);
            one.get(high);
            other.get(l);
            other.get(h2);
            for (size_t k = 0; k < bands; ++k) {
                low[k] = std::min(low[k], l[k]);
                high[k] = std::max(high[k], h2[k]);
            }
            return packed(g, low, high);
        });
    ByteUnpacker in(whole);
    in.get(grid);
    in.get(m_minimum);
    in.get(m_maximum);
    m_far_outside = std::count(grid.begin(), grid.end(), seen_far_outside);
    m_valid = std::count(grid.begin(), grid.end(), seen_valid) + m_far_outside;
    if (m_valid > 0) return;
    m_minimum.clear();
    m_maximum.clear();
}

std::unique_ptr<CubeReader> RangeWatch::open_reader() const { return std::make_unique<Reader>(*this); }

} // namespace hsi::stream
