// SPDX-License-Identifier: MIT
#include "stream/statistics_sums.h"

#include "core/byte_pack.h"
#include "core/error.h"
#include "core/valid_pixel.h"
#include "parallel/group.h"
#include "parallel/threads.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace hsi::stream {
namespace {

/// Returns the first 27 of a number's 53 bits.
double upper_bits(double x) {
    uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= ~((uint64_t{1} << 26) - 1);
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

/// Calls work(row) for all rows of a matrix on and below its diagonal, the longest rows first. Uses several
/// threads if there are many entries.
template <class Work>
void for_rows(int rows, int threads, const Work& work) {
    constexpr size_t worth_a_thread = 5000; // in entries; a hundred entries take some microseconds
    const auto members = static_cast<int>(
        std::clamp<size_t>(at_lower(rows, 0) / worth_a_thread, 1, static_cast<size_t>(std::max(1, threads))));
    parallel::for_each(rows, members, nullptr,
                       [&](int64_t unit, int) { work(rows - 1 - static_cast<int>(unit)); });
}

/// Returns the number of entries of a covariance; 0 if not `wanted`.
size_t entries(int bands, bool wanted) { return wanted ? at_lower(bands, 0) : 0; }

} // namespace

std::vector<double> SceneStatistics::mean_products() const {
    std::vector<double> products = covariance;
    const auto n = static_cast<size_t>(bands);
    for (size_t a = 0; a < n; ++a)
        for (size_t b = 0; b < n; ++b)
            products[a * n + b] += mean[a] * mean[b];
    return products;
}

std::vector<int> SceneStatistics::empty_bands() const {
    std::vector<int> empty;
    for (size_t b = 0; b < finite.size(); ++b)
        if (finite[b] == 0) empty.push_back(static_cast<int>(b));
    return empty;
}

void SceneStatistics::set_constant(int band, float level) {
    const auto n = static_cast<size_t>(bands), at = static_cast<size_t>(band);
    constant.push_back(band);
    mean[at] = static_cast<double>(level);
    for (size_t b = 0; b < n; ++b)
        covariance[at * n + b] = covariance[b * n + at] = 0;
}

SceneStatistics SceneStatistics::assumed(const CubeShape& scene) {
    const auto size = static_cast<size_t>(scene.bands);
    SceneStatistics r;
    r.bands = scene.bands;
    r.valid_pixels = r.pairs = scene.pixels();
    r.mean.assign(size, 0.0);
    r.finite.assign(size, scene.pixels());
    r.covariance.assign(size * size, 0.0);
    for (size_t b = 0; b < size; ++b)
        r.covariance[b * size + b] = 1;
    r.differences = r.covariance;
    return r;
}

// Sums
// ----------------------------------------------------------------------------------------------------------

PixelSums::PixelSums(int n, Statistics what)
    : bands(n), finite(static_cast<size_t>(n)), sum(static_cast<size_t>(n)),
      product(entries(n, what != Statistics::means)),
      difference(entries(n, what == Statistics::differences)) {}

void PixelSums::add(const PixelSums& other) {
    if (other.bands != bands) throw Error("internal: sums of other bands");
    valid += other.valid;
    invalid += other.invalid;
    pairs += other.pairs;
    for (size_t b = 0; b < finite.size(); ++b)
        finite[b] += other.finite[b];
    sum.add(other.sum);
    product.add(other.product);
    difference.add(other.difference);
}

void PixelSums::unite(parallel::Group& ranks) {
    const auto packed = [this] { return BytePacker().put(valid).put(invalid).put(pairs).put(finite).take(); };
    const auto take = [this](const std::string& bytes, int64_t before) {
        ByteUnpacker in(bytes);
        valid = before * valid + in.one<int64_t>();
        invalid = before * invalid + in.one<int64_t>();
        pairs = before * pairs + in.one<int64_t>();
        const auto there = in.one<std::vector<int64_t>>();
        if (there.size() != finite.size()) throw Error("internal: sums of other bands");
        for (size_t b = 0; b < finite.size(); ++b)
            finite[b] = before * finite[b] + there[b];
    };
    ranks.unite(
        "counts", packed, [&](const std::string& bytes) { take(bytes, 1); },
        [&](const std::string& bytes) { take(bytes, 0); });
    stream::unite(ranks, "sums", sum);
    if (product.size() > 0) stream::unite(ranks, "products", product);
    if (difference.size() > 0) stream::unite(ranks, "differences", difference);
}

// Blocks
// ----------------------------------------------------------------------------------------------------------

StatisticsSums::StatisticsSums(int n, Statistics wanted)
    : PixelSums(n, wanted), what(wanted), m_varies(static_cast<size_t>(n)) {}

uint64_t StatisticsSums::bytes(int bands, Statistics what) {
    // Floats, and their sums and differences in double precision, are multiples of 2^-149 below 2^128.
    // add_products() multiplies two of them to multiples of 2^-298, below 2^258 per pixel. There is room for
    // 2^40 pixels.
    const uint64_t matrices = what == Statistics::means ? 0 : what == Statistics::differences ? 2 : 1;
    return matrices * (math::ExactSums::most_bytes(at_lower(bands, 0), -298, 298) +
                       math::ExactSums::most_bytes(static_cast<size_t>(bands), -149, 170));
}

void StatisticsSums::add_sums(const double* block_sum) { sum.add(0, block_sum, finite.size()); }

void StatisticsSums::add_block(int64_t count, const float* centre, const double* block_sum,
                               const LowerRows& scatter) {
    add_sums(block_sum);
    std::vector<double> rest(finite.size());
    for (size_t b = 0; b < rest.size(); ++b)
        rest[b] = block_sum[b] - static_cast<double>(count) * static_cast<double>(centre[b]);
    add_products(count, centre, rest.data(), scatter);
}

void StatisticsSums::add_centred_block(int64_t count, const float* centre, const double* rest,
                                       const LowerRows& scatter) {
    std::vector<double> of_centres(centre, centre + bands);
    for (double& c : of_centres)
        c *= static_cast<double>(count); // exact: the factors have 24 and 13 bits
    add_sums(of_centres.data());
    add_sums(rest);
    add_products(count, centre, rest, scatter);
}

void StatisticsSums::add_products(int64_t count, const float* centres, const double* rest,
                                  const LowerRows& scatter) {
    const auto n = static_cast<double>(count);
    const auto size = static_cast<size_t>(bands);
    if (m_level.empty()) m_level.assign(centres, centres + size);
    for (size_t b = 0; b < size; ++b) { // squares add up to zero only if all are zero
        if (scatter.row(static_cast<int>(b))[b] > 0 || m_level[b] != centres[b]) m_varies[b] = true;
    }
    const std::vector<double> centre(centres, centres + size);
    std::vector<double> upper(size), lower(size), products(size);
    for (size_t a = 0; a < size; ++a) {
        const double* const row = scatter.row(static_cast<int>(a));
        // x_a x_b = (x_a - c_a)(x_b - c_b) + c_a (x_b - c_b) + c_b (x_a - c_a) + c_a c_b. The last term has
        // the most digits and is added exactly, in two parts.
        for (size_t b = 0; b <= a; ++b) {
            const double of_centres = centre[a] * centre[b]; // exact: the product has 48 bits
            const double high = upper_bits(of_centres);
            // Both products are exact: 27 or 26 bits of of_centres, times the 13 bits of the count.
            upper[b] = n * high;
            lower[b] = n * (of_centres - high);
            products[b] = row[b] + (centre[a] * rest[b] + centre[b] * rest[a]);
        }
        const size_t at = at_lower(static_cast<int>(a), 0);
        product.add(at, upper.data(), a + 1);
        product.add(at, lower.data(), a + 1);
        product.add(at, products.data(), a + 1);
    }
}

void StatisticsSums::add_pairs(int64_t count, const LowerRows& scatter) {
    pairs += count;
    for (int a = 0; a < bands; ++a)
        difference.add(at_lower(a, 0), scatter.row(a), static_cast<size_t>(a) + 1);
}

// Workers and ranks
// ----------------------------------------------------------------------------------------------------------

void StatisticsSums::add_counts(int64_t valid_pixels, int64_t valid_pairs,
                                const std::vector<int64_t>& finite_values, const std::vector<float>& level,
                                const std::vector<char>& varies) {
    valid += valid_pixels;
    pairs += valid_pairs;
    for (size_t b = 0; b < finite.size(); ++b)
        finite[b] += finite_values[b];
    take_levels(level, varies);
}

void StatisticsSums::take_levels(const std::vector<float>& level, const std::vector<char>& varies) {
    if (m_level.empty()) m_level = level;
    for (size_t b = 0; b < level.size(); ++b)
        if (varies[b] || m_level[b] != level[b]) m_varies[b] = true;
}

void StatisticsSums::add(const StatisticsSums& other) {
    PixelSums::add(other);
    take_levels(other.m_level, other.m_varies);
}

void unite(parallel::Group& ranks, const std::string& what, math::ExactSums& sums) {
    ranks.unite(
        what, [&] { return sums.packed(); }, [&](const std::string& bytes) { sums.add_packed(bytes); },
        [&](const std::string& bytes) { sums.set_packed(bytes); });
}

void StatisticsSums::unite(parallel::Group& ranks) {
    PixelSums::unite(ranks);
    const auto take = [&](const std::string& bytes) {
        ByteUnpacker in(bytes);
        const auto level = in.one<std::vector<float>>();
        take_levels(level, in.one<std::vector<char>>());
    };
    ranks.unite(
        "levels of bands", [this] { return BytePacker().put(m_level).put(m_varies).take(); }, take,
        [&](const std::string& bytes) {
            m_level.clear();
            std::fill(m_varies.begin(), m_varies.end(), char{0});
            take(bytes);
        });
}

// The result
// ----------------------------------------------------------------------------------------------------------

SceneStatistics StatisticsSums::result(int threads) const {
    const auto size = static_cast<size_t>(bands);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    SceneStatistics r;
    r.bands = bands;
    r.valid_pixels = valid;
    r.invalid_pixels = invalid;
    r.finite = finite;
    r.mean = valid > 0 ? means() : std::vector<double>(size, nan);
    if (what == Statistics::means) return r;
    r.covariance = valid > 0 ? covariance(threads) : std::vector<double>(size * size, nan);
    for (size_t b = 0; b < m_level.size(); ++b)
        if (!m_varies[b]) r.set_constant(static_cast<int>(b), m_level[b]);
    double greatest = 0;
    for (size_t b = 0; b < size && valid > 0; ++b)
        greatest = std::max(greatest, r.covariance[b * (size + 1)]);
    // The smallest normal float is 1e-38. With a variance below this limit, products lose more than ten
    // digits of the whole variance.
    constexpr double least_variance = 1e-28;
    if (what == Statistics::covariance && valid > 0 && r.constant.size() < size && greatest < least_variance)
        throw Error("the scene's values vary by less than 1e-14, so their products are 0 in single precision",
                    "Multiply the values first, for example by 1e15 (gdal_calc.py).");
    if (what != Statistics::differences) return r;
    r.pairs = pairs;
    r.differences.assign(size * size, nan);
    if (pairs > 0)
        for_rows(bands, threads, [&](int a) {
            for (int b = 0; b <= a; ++b) {
                const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
                r.differences[i * size + j] = r.differences[j * size + i] =
                    difference.value(at_lower(a, b)) / static_cast<double>(pairs);
            }
        });
    return r;
}

/// Returns the means of the valid pixels. There must be at least one valid pixel.
std::vector<double> StatisticsSums::means() const {
    std::vector<double> mean;
    for (size_t b = 0; b < sum.size(); ++b)
        mean.push_back(sum.value(b) / static_cast<double>(valid));
    return mean;
}

/// Returns the covariance matrix (bands x bands) of the valid pixels, at least one. The result has only
/// rounding errors, whatever the level of the values.
std::vector<double> StatisticsSums::covariance(int threads) const {
    // The sums are centred at m, the means rounded to single precision. So the common part of means and
    // products cancels without rounding. With S = sum of x, R = S - n m and P_ab = sum of x_a x_b:
    //   n C_ab = P_ab - n m_a m_b - m_a R_b - m_b R_a - R_a R_b / n.
    const auto size = static_cast<size_t>(bands);
    const auto n_low = static_cast<double>(valid % (int64_t{1} << 24)),
               n_high = static_cast<double>(valid - valid % (int64_t{1} << 24));
    const double pixels = n_low + n_high;
    std::vector<double> middle, rest, matrix(size * size);
    for (const double mean : means()) {
        middle.push_back(static_cast<double>(static_cast<float>(mean)));
        rest.push_back(sum.value_with(rest.size(), {-n_low * middle.back(), -n_high * middle.back()}));
    }
    for_rows(bands, threads, [&](int row) {
        const auto i = static_cast<size_t>(row);
        for (size_t j = 0; j <= i; ++j) {
            const double of_middles = middle[i] * middle[j], upper = upper_bits(of_middles),
                         lower = of_middles - upper;
            const double scatter =
                product.value_with(at_lower(static_cast<int>(i), static_cast<int>(j)),
                                   {-n_low * upper, -n_high * upper, -n_low * lower, -n_high * lower}) -
                (middle[i] * rest[j] + middle[j] * rest[i]) - rest[i] * rest[j] / pixels;
            matrix[i * size + j] = matrix[j * size + i] = scatter / pixels;
        }
    });
    return matrix;
}

// Across the borders of blocks
// ----------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t block_lines = block_shape(Statistics::differences).lines;

/// Adds the pairs of two neighbouring columns, bands x lines. Products are added in the order in which the
/// scan's kernels add those of eight pixels (stream/scatter-inl.h).
void add_columns(const std::vector<float>& left, const std::vector<float>& right, StatisticsSums& sums) {
    static_assert(block_lines == 8);
    const auto bands = static_cast<size_t>(sums.bands), lines = right.size() / bands;
    const auto valid = [&](const std::vector<float>& column, size_t line) {
        return is_valid_pixel(column.data() + line, sums.bands, static_cast<ptrdiff_t>(lines));
    };
    std::vector<double> differences(block_lines * bands),
        row(bands); // lines x bands; 0 without a pair
    int64_t count = 0;
    for (size_t line = 0; line < lines; ++line) {
        if (!valid(left, line) || !valid(right, line)) continue;
        ++count;
        for (size_t b = 0; b < bands; ++b)
            differences[line * bands + b] =
                static_cast<double>(right[b * lines + line]) - static_cast<double>(left[b * lines + line]);
    }
    if (count == 0) return;
    for (size_t a = 0; a < bands; ++a) {
        for (size_t b = 0; b <= a; ++b) {
            const auto product = [&](size_t line) {
                return differences[line * bands + a] * differences[line * bands + b];
            };
            row[b] = ((product(0) + product(4)) + (product(1) + product(5))) +
                     ((product(2) + product(6)) + (product(3) + product(7)));
        }
        sums.difference.add(at_lower(static_cast<int>(a), 0), row.data(), a + 1);
    }
    sums.pairs += count;
}

} // namespace

void BorderPairs::add(const CubeView<float>& block, int64_t x, int64_t y, StatisticsSums& sums) {
    if (x > 0) meet(block, 0, {x, y}, false, sums);
    if (x + block.samples < m_samples) meet(block, block.samples - 1, {x + block.samples, y}, true, sums);
}

void BorderPairs::meet(const CubeView<float>& block, int64_t sample, const Border& border, bool left,
                       StatisticsSums& sums) {
    std::vector<float> mine(static_cast<size_t>(block.bands) * static_cast<size_t>(block.lines)), other;
    for (int b = 0; b < block.bands; ++b)
        for (int64_t line = 0; line < block.lines; ++line)
            mine[static_cast<size_t>(b * block.lines + line)] = block.at(b, line, sample);
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_waiting.find(border);
        if (found == m_waiting.end()) {
            m_waiting.emplace(border, Column{left, std::move(mine)});
            return;
        }
        other = std::move(found->second.values);
        m_waiting.erase(found);
    }
    add_columns(left ? mine : other, left ? other : mine, sums);
}

uint64_t BorderPairs::bytes(const CubeShape& scene, const TileLimits& limits) {
    // The columns that wait for a neighbour are those at the borders of a tile, and of the next tile.
    int64_t pixels =
        (limits.core_samples / block_shape(Statistics::differences).samples + 2) * 2 * limits.core_lines;
    // With several ranks, a tile's neighbours may belong to another rank: its columns then wait until the
    // end.
    if (limits.ranks > 1 && limits.core_samples < scene.samples)
        pixels += scene.samples / limits.core_samples * 2 * scene.lines;
    return static_cast<uint64_t>(pixels) * static_cast<uint64_t>(scene.bands) * sizeof(float);
}

/// Sends columns to the right of a border to all ranks. The rank that has the left column adds the pairs of
/// both columns.
void BorderPairs::exchange(parallel::Group& ranks, StatisticsSums& sums) {
    constexpr uint64_t message_bytes = uint64_t{1} << 20; // bytes in the messages of all ranks together
    auto waiting = std::exchange(m_waiting, {});
    auto next = waiting.begin();
    const auto piece = [&] {
        BytePacker out;
        for (uint64_t bytes = 0;
             next != waiting.end() && bytes * static_cast<uint64_t>(ranks.size()) < message_bytes; ++next) {
            if (next->second.left) continue;
            out.put(next->first.first).put(next->first.second).put(next->second.values);
            bytes += next->second.values.size() * sizeof(float);
        }
        return out.take();
    };
    ranks.all_in_pieces("columns", piece, [&](int, const std::string& bytes) {
        for (ByteUnpacker in(bytes); !in.empty();) {
            Border border;
            in.get(border.first);
            in.get(border.second);
            const auto right = in.one<std::vector<float>>();
            const auto mine = waiting.find(border);
            if (mine != waiting.end() && mine->second.left) add_columns(mine->second.values, right, sums);
        }
    });
}

} // namespace hsi::stream
