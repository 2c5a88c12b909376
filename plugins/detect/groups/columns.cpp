// SPDX-License-Identifier: MIT
// Groups of columns. A tile has all lines of its groups, so a group is a small scene in memory. Its pixels
// are gathered; then statistics, factor and scores are computed. Sums of a group are in double precision and
// in the order of its pixels.
#include "core/counted.h"
#include "core/valid_pixel.h"
#include "detect/groups/column_task.h"
#include "detect/groups/groups.h"
#include "math/definite.h"
#include "parallel/group.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace hsi::detect {
namespace {

/// Pixels whose products are added together. With 224 bands, they take a quarter of a megabyte.
constexpr int64_t product_pixels = 128;

/// Returns the sum of a row; the result does not depend on the width of registers.
double sum_of(const float* x, int64_t count) {
    double sums[8] = {};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; ++k)
            sums[k] += static_cast<double>(x[i + k]);
    for (; i < count; ++i)
        sums[i % 8] += static_cast<double>(x[i]);
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

bool are_finite(const Targets& targets) {
    const auto is_finite = [](double v) { return std::isfinite(v); };
    return std::all_of(targets.spectra.begin(), targets.spectra.end(),
                       [&](const auto& x) { return std::all_of(x.begin(), x.end(), is_finite); });
}

/// The pixels of a group, or of its background: bands x pixels.
struct Pixels {
    const float* first = nullptr;
    ptrdiff_t pitch = 0; ///< distance between two bands
    int64_t count = 0;
    const float* band(int b) const { return first + b * pitch; }
};

/// The moments of a background in memory.
class GroupMoments {
  public:
    explicit GroupMoments(int bands)
        : m_bands(bands), m_pitch((bands + math::slack + 7) / 8 * 8 + 8),
          m_rows(static_cast<size_t>(m_pitch * product_pixels)),
          m_products(static_cast<size_t>(m_pitch * (bands + math::slack))) {}
    static uint64_t bytes(int bands) {
        const auto pitch = static_cast<uint64_t>(bands) + math::slack + 16;
        return 8 * pitch * (product_pixels + static_cast<uint64_t>(bands) + math::slack);
    }

    /// Adds at least one pixel. centred: adds products of the values minus the mean. Otherwise (cem, whose
    /// matrix is R) adds products of the values of all bands.
    void take(const Pixels& x, bool centred) {
        m_count = x.count;
        m_mean.clear();
        m_constant.clear();
        m_varying.clear();
        for (int b = 0; b < m_bands; ++b) {
            const float* const row = x.band(b);
            const bool constant =
                std::all_of(row, row + x.count, [first = *row](float v) { return v == first; });
            m_mean.push_back(constant ? static_cast<double>(*row)
                                      : sum_of(row, x.count) / static_cast<double>(x.count));
            (constant ? m_constant : m_varying).push_back(b);
        }
        m_centre = m_mean;
        m_used = m_varying;
        if (!centred) {
            m_centre.assign(m_mean.size(), 0.0);
            m_used.resize(m_mean.size());
            std::iota(m_used.begin(), m_used.end(), 0);
        }
        add_products(x, m_centre, m_used);
    }
    bool varies() const { return !m_varying.empty(); }

    /// Returns the centred statistics of the added pixels.
    stream::SceneStatistics statistics() const {
        stream::SceneStatistics s;
        s.bands = m_bands;
        s.valid_pixels = m_count;
        s.mean = m_mean;
        s.constant = m_constant;
        const auto all = static_cast<size_t>(m_bands);
        s.covariance.assign(all * all, 0.0);
        for (size_t a = 0; a < m_varying.size(); ++a)
            for (size_t b = a; b < m_varying.size(); ++b) {
                const double c =
                    m_products[a * static_cast<size_t>(m_pitch) + b] / static_cast<double>(m_count);
                const auto i = static_cast<size_t>(m_varying[a]), j = static_cast<size_t>(m_varying[b]);
                s.covariance[i * all + j] = s.covariance[j * all + i] = c;
            }
        return s;
    }

    /// Returns the shrinkage of -shrinkage ledoit-wolf for the added pixels. x: the pixels that were passed
    /// to take().
    double share(const Pixels& x) {
        const BandShrinkage shrinkage(m_centre, m_used, m_products.data(), m_pitch, m_count);
        return shrinkage.share(fourth_powers(x, shrinkage));
    }

    /// Returns true if the matrix, shrunk towards its diagonal, certainly has an inverse. Then detector() can
    /// be called.
    bool is_regular(double share) const {
        double least = std::numeric_limits<double>::infinity(), trace = 0;
        for (size_t a = 0; a < m_used.size(); ++a) {
            const double own = m_products[a * static_cast<size_t>(m_pitch + 1)];
            least = std::min(least, own);
            trace += own;
        }
        return least > 0 && share * least >= 2 * least_share * trace / static_cast<double>(m_used.size());
    }

    /// Makes the same detector as make_detector(). is_regular(share) must be true, and the targets must be
    /// finite. The function overwrites the sums. Returns null if a target is the mean.
    std::unique_ptr<Detector> detector(Method method, const Targets& targets, double share) {
        const auto n = m_used.size(), pitch = static_cast<size_t>(m_pitch);
        auto made = std::make_unique<Detector>();
        Detector& d = *made;
        d.method = method;
        d.bands = m_bands;
        d.used = m_used;
        if (method != Method::cem) d.constant = m_constant;
        d.targets = static_cast<int>(targets.spectra.size());
        d.background_pixels = m_count;
        d.shrinkage = share;
        d.least_eigenvalue = d.free_dimensions = std::nan("");
        const bool factor = method == Method::ace || method == Method::rx;
        const auto count = static_cast<double>(m_count);
        const double unbiased = 1 / (method == Method::cem ? count : count - 1),
                     rest = (1 - share) * unbiased;
        for (size_t a = 0; a < n; ++a) {
            double* const row = m_products.data() + a * pitch;
            if (factor) d.deviation.push_back(std::sqrt(row[a] / count));
            row[a] *= unbiased;
            d.mean_eigenvalue += row[a] / static_cast<double>(n);
            for (size_t b = a + 1; b < n; ++b)
                row[b] *= rest;
            row[n] = 0; // solve() needs this column for a vector
            d.centre.push_back(m_centre[static_cast<size_t>(m_used[a])]);
        }
        math::definite_kernels().solve(m_products.data(), m_pitch, static_cast<int>(n));
        for (const auto& spectrum : targets.spectra)
            if (!add_matched_row(d, spectrum, targets.absorption)) return nullptr;
        if (factor) d.factor = inverse_factor(n);
        return made;
    }

    /// Returns sum |z|^4.
    double fourth_powers(const Pixels& x, const BandShrinkage& of) {
        m_squared.assign(static_cast<size_t>(x.count), 0.0);
        for (int b = 0; b < m_bands; ++b) {
            const double centre = of.centre()[static_cast<size_t>(b)],
                         weight = of.weight()[static_cast<size_t>(b)];
            if (weight == 0) continue;
            const float* const row = x.band(b);
            for (size_t i = 0; i < m_squared.size(); ++i) {
                const double z = static_cast<double>(row[i]) - centre;
                m_squared[i] += weight * z * z;
            }
        }
        double sum = 0;
        for (const double q : m_squared)
            sum += q * q;
        return sum;
    }

  private:
    void add_products(const Pixels& x, const std::vector<double>& mean, const std::vector<int>& varying) {
        const auto& simd = math::definite_kernels();
        const auto used = static_cast<int>(varying.size());
        std::fill(m_products.begin(), m_products.end(), 0.0);
        std::fill(m_rows.begin(), m_rows.end(), 0.0);
        for (int64_t from = 0; from < x.count; from += product_pixels) {
            const int64_t count = std::min(product_pixels, x.count - from);
            for (int k = 0; k < used; ++k) {
                const int b = varying[static_cast<size_t>(k)];
                const float* const row = x.band(b) + from;
                const double centre = mean[static_cast<size_t>(b)];
                double* const to = m_rows.data() + k;
                for (int64_t i = 0; i < count; ++i)
                    to[i * m_pitch] = static_cast<double>(row[i]) - centre;
            }
            simd.update(m_products.data(), m_pitch, used, used, m_rows.data(), m_pitch,
                        static_cast<int>(count));
        }
    }

    /// Returns L^-1, lower, of M = LL'. R = L' is stored in place of the products; each row of L^-1 follows
    /// from the rows above.
    std::vector<double> inverse_factor(size_t n) const {
        std::vector<double> inverse(n * n);
        const auto pitch = static_cast<size_t>(m_pitch);
        for (size_t a = 0; a < n; ++a) {
            double* const row = inverse.data() + a * n;
            for (size_t k = 0; k < a; ++k) {
                const double l = m_products[k * pitch + a];
                const double* const above = inverse.data() + k * n;
                for (size_t b = 0; b <= k; ++b)
                    row[b] -= l * above[b];
            }
            const double over = 1 / m_products[a * pitch + a];
            for (size_t b = 0; b < a; ++b)
                row[b] *= over;
            row[a] = over;
        }
        return inverse;
    }

    /// Adds the row of a target, by substitution in the factor R, which is stored in place of the products.
    /// Returns false if the target is the mean.
    bool add_matched_row(Detector& d, const std::vector<double>& spectrum, bool absorption) {
        const auto n = d.used.size(), pitch = static_cast<size_t>(m_pitch);
        std::vector<double> z(n);
        for (size_t a = 0; a < n; ++a) {
            const double t = spectrum[static_cast<size_t>(d.used[a])];
            z[a] = absorption ? t * d.centre[a] : t - d.centre[a];
        }
        double contrast = 0;
        for (size_t a = 0; a < n; ++a) { // computes R'^-1 z
            const double* const row = m_products.data() + a * pitch;
            z[a] /= row[a];
            contrast += z[a] * z[a];
            for (size_t b = a + 1; b < n; ++b)
                z[b] -= row[b] * z[a];
        }
        if (!is_enough_contrast(contrast, absorption)) return false;
        for (size_t a = n; a-- > 0;) { // applies R^-1 to the result
            const double* const row = m_products.data() + a * pitch;
            double sums[4] = {};
            for (size_t b = a + 1; b < n; ++b)
                sums[b % 4] += row[b] * z[b];
            z[a] = (z[a] - ((sums[0] + sums[1]) + (sums[2] + sums[3]))) / row[a];
        }
        for (const double v : z)
            d.rows.push_back(v / contrast);
        d.constants.push_back(contrast);
        return true;
    }

    const int m_bands;
    const ptrdiff_t m_pitch;
    int64_t m_count = 0;        ///< number of added pixels
    std::vector<double> m_mean; ///< one per band
    std::vector<int> m_constant, m_varying;
    std::vector<double> m_centre; ///< centre of the products, one value per band
    std::vector<int> m_used;      ///< bands that have products
    /// Matrix of product_pixels x m_pitch: pixels minus their centre, in the used bands
    std::vector<double> m_rows;
    std::vector<double> m_products; ///< used bands x used bands, on and above the diagonal
    std::vector<double> m_squared;  ///< |z|^2 of each pixel
};

class ColumnWorker final : public ColumnLane {
  public:
    ColumnWorker(const ColumnTask& task, int64_t first_group)
        : m_task(task), m_first(first_group), m_moments(task.scene.bands),
          m_packed(task.group_values() * static_cast<size_t>(task.batch())),
          m_scores(static_cast<size_t>(task.scores() + 1) * static_cast<size_t>(task.pixels())),
          m_valid(static_cast<size_t>(task.pixels())) {}

    static uint64_t bytes(const ColumnTask& task) {
        const auto pixels = static_cast<uint64_t>(task.pixels()),
                   bands = static_cast<uint64_t>(task.scene.bands),
                   scores = static_cast<uint64_t>(task.scores());
        // Matrices of doubles: covariance, matrix, factors, the kernels' panels
        constexpr uint64_t matrices = 8;
        return 4 * task.group_values() * static_cast<uint64_t>(task.batch()) + // gathered pixels
               4 * pixels * (bands + scores + 1) +                             // background pixels, scores
               33 * pixels + matrices * 8 * bands * bands + GroupMoments::bytes(task.scene.bands) +
               64 * 16 * (bands + scores);
    }

    void process(const Tile& tile, const CubeView<float>& in,
                 const std::vector<CubeView<float>>& out) override {
        const Columns& c = m_task.columns;
        take_groups(tile, in, c.group(tile.core.x), c.group(tile.core.right() - 1) + 1, out);
    }

    void take_groups(const Tile& tile, const CubeView<float>& in, int64_t first, int64_t last,
                     const std::vector<CubeView<float>>& out) override {
        for (int64_t group = first; group < last; group += m_task.batch()) {
            const int64_t end = std::min(last, group + m_task.batch());
            m_task.pack(tile, in, group, end, m_packed.data());
            for (int64_t g = group; g < end; ++g)
                do_group(tile, g, m_packed.data() + static_cast<size_t>(g - group) * m_task.group_values(),
                         out);
        }
    }

  private:
    int64_t first_sample(int64_t group) const { return m_task.first_sample(group); }
    int64_t end_sample(int64_t group) const { return m_task.end_sample(group); }

    void do_group(const Tile& tile, int64_t group, float* packed, const std::vector<CubeView<float>>& out) {
        const int64_t x = first_sample(group), width = end_sample(group) - x,
                      pixels = width * m_task.scene.lines;
        const Pixels all{packed, static_cast<ptrdiff_t>(pixels), pixels};
        GroupRecord record;
        find_background(all, x, width);
        record.pixels = static_cast<int64_t>(m_background.size());
        const auto detector = detector_of(all, record);
        auto view = CubeView<float>::packed(m_scores.data(), m_task.scores() + 1, 1, pixels);
        if (detector)
            score(*detector, m_task.decision, packed, pixels);
        else
            std::fill_n(m_scores.data(), static_cast<size_t>(pixels) * static_cast<size_t>(view.bands),
                        no_value);
        hand_out(tile, x, width, detector != nullptr, view, out);
        if (x >= tile.core.x) found.push_back({group - m_first, record});
    }

    /// Marks the valid pixels, and finds the positions of the pixels that are used for statistics.
    void find_background(const Pixels& all, int64_t x, int64_t width) {
        m_row.start(static_cast<size_t>(all.count));
        for (int b = 0; b < m_task.scene.bands; ++b)
            m_row.look(all.band(b));
        m_row.judge();
        m_background.clear();
        for (int64_t i = 0; i < all.count; ++i) {
            const bool is = m_row.is_valid(static_cast<size_t>(i));
            m_valid[static_cast<size_t>(i)] = is;
            if (is && (m_task.mask == nullptr || m_task.mask->at(i / width, x + i % width)))
                m_background.push_back(i);
        }
    }

    /// Returns the pixels of `all` at `places`, gathered.
    Pixels chosen(const Pixels& all, const std::vector<int64_t>& places) {
        if (static_cast<int64_t>(places.size()) == all.count) return all;
        m_chosen.resize(places.size() * static_cast<size_t>(m_task.scene.bands));
        float* to = m_chosen.data();
        for (int b = 0; b < m_task.scene.bands; ++b)
            for (const int64_t i : places)
                *to++ = all.band(b)[i];
        return {m_chosen.data(), static_cast<ptrdiff_t>(places.size()), static_cast<int64_t>(places.size())};
    }

    /// Returns the detector of a group; null if the group has no scores, for the reason in `record`.
    std::unique_ptr<Detector> detector_of(const Pixels& all, GroupRecord& record) {
        const GroupOptions& o = m_task.options;
        auto detector = detector_from(chosen(all, m_background), record);
        const auto count = static_cast<int64_t>(m_background.size());
        const int64_t leave = excluded_pixels(o.exclude_share, count);
        for (int round = 0; round < o.exclude_iterations && leave > 0 && detector; ++round) {
            score(*detector, {}, all.first, all.count);
            m_best.resize(m_background.size());
            for (size_t i = 0; i < m_best.size(); ++i) {
                m_best[i] = m_scores[static_cast<size_t>(m_background[i])];
                for (int k = 1; k < m_task.scores(); ++k)
                    m_best[i] =
                        std::max(m_best[i], m_scores[static_cast<size_t>(k * all.count + m_background[i])]);
            }
            auto kept = m_background;
            for (const int64_t at : greatest_scores(m_best.data(), count, leave))
                kept[static_cast<size_t>(at)] = -1;
            kept.erase(std::remove(kept.begin(), kept.end(), int64_t{-1}), kept.end());
            record.excluded = leave;
            detector = detector_from(chosen(all, kept), record);
        }
        return detector;
    }

    std::unique_ptr<Detector> detector_from(const Pixels& background, GroupRecord& record) {
        const GroupOptions& o = m_task.options;
        record.state = GroupState::few_pixels;
        if (background.count < 2) return nullptr;
        const bool centred = o.method != Method::cem;
        m_moments.take(background, centred);
        record.state = GroupState::no_variance;
        if (!m_moments.varies()) return nullptr;
        auto conditioning = o.conditioning;
        conditioning.by_bands = true;
        conditioning.tell_eigenvalues = false;
        if (o.ledoit_wolf) conditioning.shrinkage = m_moments.share(background);
        if (m_task.finite && m_moments.is_regular(conditioning.shrinkage)) {
            record.shrinkage = conditioning.shrinkage;
            record.regularised = false;
            auto detector = m_moments.detector(o.method, o.targets, conditioning.shrinkage);
            record.state = detector ? GroupState::scored : GroupState::target_is_mean;
            return detector;
        }
        if (!centred) m_moments.take(background, true);
        const auto moments = m_moments.statistics();
        record.shrinkage = conditioning.shrinkage;
        try {
            auto detector =
                std::make_unique<Detector>(make_detector(o.method, o.targets, moments, conditioning));
            record.state = GroupState::scored;
            record.regularised = detector->ridge > 0;
            return detector;
        } catch (const TargetIsMean&) {
            record.state = GroupState::target_is_mean;
            return nullptr;
        }
    }

    /// Computes the scores, and then the map if requested, of all pixels of the group.
    void score(const Detector& detector, const Decision& decision, const float* packed, int64_t pixels) {
        const auto operation = make_detection(detector, decision);
        stream::TileLimits limits;
        limits.window_samples = limits.core_samples = pixels;
        limits.window_lines = limits.core_lines = 1;
        const auto worker = operation->start(0, limits);
        std::vector<CubeView<float>> out{
            CubeView<float>::packed(m_scores.data(), m_task.scores(), 1, pixels)};
        if (decision.map)
            out.push_back(CubeView<float>::packed(m_scores.data() + static_cast<size_t>(m_task.scores()) *
                                                                        static_cast<size_t>(pixels),
                                                  1, 1, pixels));
        const Rect window{0, 0, pixels, 1};
        // The worker only reads these pixels.
        worker->process(Tile{0, window, window},
                        CubeView<float>::packed(const_cast<float*>(packed), m_task.scene.bands, 1, pixels),
                        out);
    }

    /// Writes the outputs of the group's pixels in the core.
    void hand_out(const Tile& tile, int64_t x, int64_t width, bool scored, const CubeView<float>& view,
                  const std::vector<CubeView<float>>& out) {
        const int64_t from = std::max(x, tile.core.x), to = std::min(x + width, tile.core.right());
        for (int64_t line = 0; line < tile.core.h; ++line)
            for (int64_t s = from; s < to; ++s) {
                const int64_t i = line * width + (s - x), at = s - tile.core.x;
                const bool is = m_valid[static_cast<size_t>(i)];
                valid += is && scored;
                invalid += !is;
                in_bad_groups += is && !scored;
                for (int k = 0; k < m_task.scores(); ++k)
                    out[0].row(k, line)[at] = view.row(k, 0)[i];
                if (out.size() > 1) out[1].row(0, line)[at] = view.row(m_task.scores(), 0)[i];
            }
    }

    const ColumnTask& m_task;
    const int64_t m_first;
    GroupMoments m_moments;
    HostBuffer<float> m_packed;  ///< pixels of the groups of a batch
    std::vector<float> m_chosen; ///< pixels of a background that is only part of a group
    std::vector<float> m_scores; ///< (scores + map) x pixels
    std::vector<char> m_valid;   ///< one per pixel: whether it is valid
    std::vector<float> m_best;   ///< best score of each background pixel
    std::vector<int64_t> m_background;
    PixelRow m_row;
};

class CpuColumns final : public ColumnDetection {
  public:
    using ColumnDetection::ColumnDetection;
    uint64_t scratch_bytes(const stream::TileLimits&) const override { return ColumnWorker::bytes(task()); }
    bool reads_in_place() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return make_column_lane(task());
    }
};

} // namespace

bool groups_on_devices(const GroupOptions& options, int bands) {
    constexpr int most_bands = 4096; // A vector with one double per band must fit into shared memory.
    return bands <= most_bands && are_finite(options.targets);
}

void GroupedDetection::exchange(parallel::Group& ranks) {
    Detection::exchange(ranks);
    m_without_group = ranks.sum("pixels without a group", m_without_group);
    m_in_bad_groups = ranks.sum("pixels of groups without a background", m_in_bad_groups);
}

// --- Common parts of all column detections

std::unique_ptr<ColumnLane> make_column_lane(const ColumnTask& task) {
    return std::make_unique<ColumnWorker>(task, task.columns.group(0));
}

uint64_t column_lane_bytes(const ColumnTask& task) { return ColumnWorker::bytes(task); }

ColumnDetection::ColumnDetection(ColumnTask task) : m_task(std::move(task)), m_records(m_task) {}

std::vector<int> ColumnDetection::output_bands() const {
    std::vector<int> bands{m_task.scores()};
    if (m_task.decision.map) bands.push_back(1);
    return bands;
}

void ColumnDetection::take(int64_t valid, int64_t invalid, int64_t in_bad_groups,
                           const std::vector<ColumnLane::Found>& found) {
    m_valid += valid;
    m_invalid += invalid;
    m_in_bad_groups += in_bad_groups;
    m_records.take(found);
}

void ColumnDetection::stop(stream::Worker& worker) { take(static_cast<const ColumnLane&>(worker)); }

void ColumnDetection::exchange(parallel::Group& ranks) {
    GroupedDetection::exchange(ranks);
    m_records.exchange(ranks);
}

ColumnTask make_column_task(const stream::CubeShape& scene, const Columns& columns,
                            const GroupOptions& options, const Decision& decision, const PixelMask* mask) {
    if (columns.width < 1 || columns.first < 0 || !has_background(options.method) ||
        options.targets.spectra.empty() == has_target(options.method))
        throw Error("internal: columns that make no groups, or the wrong targets");
    return {{scene, columns}, options, decision, mask, are_finite(options.targets)};
}

std::unique_ptr<GroupedDetection> make_column_detection(const stream::CubeShape& scene,
                                                        const Columns& columns, const GroupOptions& options,
                                                        const Decision& decision, const PixelMask* mask) {
    return std::make_unique<CpuColumns>(make_column_task(scene, columns, options, decision, mask));
}

} // namespace hsi::detect
