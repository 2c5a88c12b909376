// SPDX-License-Identifier: MIT
// The target search on the processor: OSP and Gram-Schmidt.
#include "atdca/atdca.h"
#include "atdca/atdca_simd.h"
#include "atdca/basis.h"
#include "atdca/candidate_pool.h"
#include "atdca/ending.h"
#include "atdca/findings.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/system.h"
#include "parallel/group.h"
#include "parallel/team.h"
#include "parallel/threads.h"
#include "stream/kept_lines.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace hsi::atdca {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
/// In pixels. With 224 bands, a region of this size fills a second-level cache.
constexpr int64_t smallest_region = 512;
constexpr int64_t largest_region = 1 << 16;
/// Pixels of a region that may join the pool at each step of a scan. GS has no bounds that skip regions, so
/// only good candidates reduce the number of scans.
constexpr size_t osp_joining = 2, gs_joining = 6;
constexpr uint64_t tile_bytes = uint64_t{8} << 20;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// The division of the scene into the tiles of the plan, and of each tile into regions. If the scene is kept
/// in memory, rank t % ranks keeps tile t.
struct Layout {
    stream::CubeShape shape;
    TilePlan plan;
    int rank = 0, ranks = 1;
    int64_t region_pixels = smallest_region;
    size_t region_cap = 0;             ///< pixels of a region that may join the pool
    std::vector<int64_t> first_region; ///< index of the first region of each tile; then the number of regions
    /// Index of the first pixel of each tile in the arrays of this rank's KeptScene; then the length of these
    /// arrays. A tile that this rank keeps is padded to whole groups; a tile of another rank has no pixels
    /// there.
    std::vector<int64_t> first_pixel;
    int64_t most_kept = 0; ///< largest number of pixels that a rank keeps, with padding

    void set_plan(const TilePlan& p) {
        plan = p;
        std::vector<int64_t> kept(static_cast<size_t>(ranks));
        first_region.assign(1, 0);
        first_pixel.assign(1, 0);
        for (int64_t t = 0; t < plan.size(); ++t) {
            const int64_t pixels = plan.tile(t).core.area();
            first_region.push_back(first_region.back() + (pixels + region_pixels - 1) / region_pixels);
            first_pixel.push_back(first_pixel.back() + (holds(t) ? round_up(pixels, group) : 0));
            kept[static_cast<size_t>(t % ranks)] += round_up(pixels, group);
        }
        most_kept = *std::max_element(kept.begin(), kept.end());
    }
    bool holds(int64_t tile) const { return tile % ranks == rank; }
    int64_t regions() const { return first_region.back(); }
    int64_t tile_of(int64_t region) const {
        return std::upper_bound(first_region.begin(), first_region.end(), region) - first_region.begin() - 1;
    }
    /// Returns the first pixel of a region within its tile, and the number of pixels.
    std::pair<int64_t, int64_t> extent(int64_t region, int64_t tile) const {
        const int64_t first = (region - first_region[static_cast<size_t>(tile)]) * region_pixels;
        return {first, std::min(region_pixels, plan.tile(tile).core.area() - first)};
    }
    static Position position(const Rect& core, int64_t pixel) {
        return {core.y + pixel / core.w, core.x + pixel % core.w};
    }
};

/// The scene in memory, in groups of pixels (atdca_simd.h). For OSP, `score` is ||P x||^2 of each pixel after
/// the first `applied` targets; `applied` has one entry per group.
struct KeptScene {
    HostBuffer<float> spectra;
    HostBuffer<double> norm;
    HostBuffer<double> score;
    std::vector<uint16_t> applied;
    static uint64_t bytes_per_pixel(int bands) { return static_cast<uint64_t>(bands) * 4 + 17; }
};

/// ATDCA within a region, in single precision. Its first pick is exact; all other picks are only candidates.
class RoughSearch {
  public:
    RoughSearch(const Options& options, int bands, int64_t region_pixels)
        : m_options(options), m_simd(simd_kernels()), m_bands(static_cast<size_t>(bands)),
          m_limit(std::min(options.targets, bands)), m_q(m_bands * static_cast<size_t>(m_limit)),
          m_p(m_bands), m_score(static_cast<size_t>(round_up(region_pixels, group))),
          m_best(m_score.size() / group), m_applied(m_best.size()) {}
    static uint64_t bytes(const Options& options, int bands, int64_t region_pixels) {
        return static_cast<uint64_t>(bands) * 4 *
                   static_cast<uint64_t>(std::min(options.targets, bands) + 1) +
               static_cast<uint64_t>(region_pixels) * 5;
    }

    /// Returns pixels of the region, the one with the greatest norm first.
    const std::vector<uint32_t>& run(const float* spectra, const double* norm, int64_t count) {
        m_picks.clear();
        m_spectra = spectra;
        m_groups = static_cast<size_t>(round_up(count, group)) / group;
        for (size_t i = 0; i < m_groups * group; ++i)
            m_score[i] = static_cast<float>(norm[i]);
        for (size_t g = 0; g < m_groups; ++g) {
            m_best[g] = *std::max_element(&m_score[g * group], &m_score[g * group] + group);
            m_applied[g] = 0;
        }
        // The first pick is final, so it is made in double precision; the first of equal norms is chosen.
        const double* first = std::max_element(norm, norm + count);
        if (!(*first > 0)) return m_picks;
        std::fill(m_p.begin(), m_p.end(), 1.0f);
        const float enough = 1e-6f * static_cast<float>(*first);
        for (size_t pick = static_cast<size_t>(first - norm);;) {
            m_picks.push_back(static_cast<uint32_t>(pick));
            const int k = static_cast<int>(m_picks.size());
            if (k >= m_limit || !add(pick, k - 1, enough)) break;
            pick = m_options.method == Method::osp ? farthest(k, enough) : longest(norm);
            if (pick == none) break;
        }
        return m_picks;
    }

  private:
    static constexpr size_t none = ~size_t{0};
    const float* group_data(size_t g) const { return m_spectra + g * group * m_bands; }

    /// Computes q_k from the pixel; returns false if the squared residual is not greater than `enough`.
    bool add(size_t pixel, int k, float enough) {
        float* const r = &m_q[static_cast<size_t>(k) * m_bands];
        const float* x = group_data(pixel / group) + pixel % group;
        const int bands = static_cast<int>(m_bands);
        for (size_t b = 0; b < m_bands; ++b)
            r[b] = x[b * group];
        for (int round = 0; round < 2; ++round)
            for (int j = 0; j < k; ++j)
                remove(&m_q[static_cast<size_t>(j) * m_bands], r);
        const float squared = m_simd.rough_dot(r, r, bands);
        if (!(squared > enough)) return false;
        const float inverse = 1.0f / std::sqrt(squared);
        for (size_t b = 0; b < m_bands; ++b)
            r[b] *= inverse;
        remove(r, m_p.data());
        return true;
    }
    void remove(const float* q, float* r) const {
        const float c = m_simd.rough_dot(q, r, static_cast<int>(m_bands));
        for (size_t b = 0; b < m_bands; ++b)
            r[b] -= c * q[b];
    }

    /// Returns the pixel of greatest residual with k targets; none if no squared residual exceeds `enough`.
    size_t farthest(int k, float enough) {
        size_t at = none;
        float best = enough;
        float c[group];
        const auto visit = [&](size_t g) {
            if (m_best[g] <= best) return;
            float* const s = &m_score[g * group];
            for (; m_applied[g] < k; ++m_applied[g]) {
                m_simd.rough_dots(group_data(g), static_cast<int>(m_bands),
                                  &m_q[static_cast<size_t>(m_applied[g]) * m_bands], c);
                for (int i = 0; i < group; ++i)
                    s[i] -= c[i] * c[i];
            }
            m_best[g] = s[0];
            for (int i = 0; i < group; ++i) {
                m_best[g] = std::max(m_best[g], s[i]);
                if (s[i] > best) {
                    best = s[i];
                    at = g * group + static_cast<size_t>(i);
                }
            }
        };
        visit(static_cast<size_t>(
            std::max_element(m_best.begin(), m_best.begin() + static_cast<ptrdiff_t>(m_groups)) -
            m_best.begin()));
        for (size_t g = 0; g < m_groups; ++g)
            visit(g);
        return at;
    }

    /// Returns the pixel of greatest |p.x|.
    size_t longest(const double* norm) {
        size_t at = none;
        float best = 0;
        float c[group];
        for (size_t g = 0; g < m_groups; ++g) {
            m_simd.rough_dots(group_data(g), static_cast<int>(m_bands), m_p.data(), c);
            for (size_t i = 0; i < group; ++i) {
                const float f = m_options.score == Score::sign ? c[i] : std::fabs(c[i]);
                if (f > best && norm[g * group + i] > 0) {
                    best = f;
                    at = g * group + i;
                }
            }
        }
        if (at != none && std::find(m_picks.begin(), m_picks.end(), at) != m_picks.end())
            return none; // The same pixel was chosen again: only rounding is left.
        return at;
    }

    const Options m_options;
    const SimdKernels& m_simd;
    const size_t m_bands;
    const int m_limit;
    std::vector<float> m_q, m_p, m_score, m_best;
    std::vector<int> m_applied;
    std::vector<uint32_t> m_picks;
    const float* m_spectra = nullptr;
    size_t m_groups = 0;
};

/// The spectra and norms of the region that is processed: in the kept scene, or in a buffer of the worker.
class RegionBuffer {
  public:
    RegionBuffer(const Layout& layout, KeptScene* kept) : m_layout(layout), m_kept(kept) {
        if (kept) return;
        m_spectra = HostBuffer<float>(static_cast<size_t>(layout.region_pixels) *
                                      static_cast<size_t>(layout.shape.bands));
        m_norm.resize(static_cast<size_t>(layout.region_pixels));
    }
    static uint64_t bytes(const Layout& layout) {
        return static_cast<uint64_t>(layout.region_pixels) *
               (static_cast<uint64_t>(layout.shape.bands) * 4 + 8);
    }
    /// Packs the region's pixels from the tile; returns the number of valid pixels.
    int64_t load(const Tile& tile, const CubeView<float>& in, int64_t first, int64_t count) {
        if (in.line_stride != in.samples) throw Error("internal: the tile is not packed");
        if (m_kept) {
            const int64_t at = m_layout.first_pixel[static_cast<size_t>(tile.index)] + first;
            spectra = m_kept->spectra.data() + at * m_layout.shape.bands;
            norm = m_kept->norm.data() + at;
            system::make_pages(spectra, static_cast<size_t>(count * m_layout.shape.bands) * sizeof(float));
        } else {
            spectra = m_spectra.data();
            norm = m_norm.data();
        }
        return simd_kernels().pack(in.row(0, 0) + first, in.band_stride, in.bands, count, spectra, norm);
    }
    float* spectra = nullptr;
    double* norm = nullptr;

  private:
    const Layout& m_layout;
    KeptScene* m_kept;
    HostBuffer<float> m_spectra;
    std::vector<double> m_norm;
};

class ReadingWorker final : public stream::Worker {
  public:
    ReadingWorker(const Options& options, const Layout& layout, std::vector<Region>& regions, KeptScene* kept)
        : m_layout(layout), m_regions(regions), m_buffer(layout, kept), m_kept(kept),
          m_search(options, layout.shape.bands, layout.region_pixels) {}

    void process(const Tile& tile, const CubeView<float>& in, const std::vector<CubeView<float>>&) override {
        const auto t = static_cast<size_t>(tile.index);
        for (int64_t id = m_layout.first_region[t]; id < m_layout.first_region[t + 1]; ++id) {
            const auto [first, count] = m_layout.extent(id, tile.index);
            valid += m_buffer.load(tile, in, first, count);
            const double* norm = m_buffer.norm;
            const auto& picks = m_search.run(m_buffer.spectra, norm, count);
            if (m_kept)
                std::copy(norm, norm + round_up(count, group),
                          m_kept->score.data() + m_layout.first_pixel[t] + first);
            if (picks.empty()) continue;
            Region& region = m_regions[static_cast<size_t>(id)];
            region.norm = norm[picks.front()];
            const Position at = Layout::position(tile.core, first + picks.front());
            if (before(region.norm, at, best.score, best.position)) {
                best.score = region.norm;
                best.position = at;
                best.region = id;
            }
            for (size_t k = 0; k < std::min(picks.size(), m_layout.region_cap); ++k) {
                region.pooled.push_back(picks[k]);
                found.add(Layout::position(tile.core, first + picks[k]), id, picks[k],
                          m_buffer.spectra +
                              picks[k] / group * group * static_cast<uint32_t>(m_layout.shape.bands),
                          picks[k] % group, m_layout.shape.bands);
            }
        }
    }

    int64_t valid = 0;
    Best best;
    Found found;

  private:
    const Layout& m_layout;
    std::vector<Region>& m_regions;
    RegionBuffer m_buffer;
    KeptScene* m_kept;
    RoughSearch m_search;
};

/// The first pass: finds norms, the first target and candidates, and fills the kept scene if there is one.
class Reading final : public stream::Operation {
  public:
    Reading(const Options& options, const Layout& layout, std::vector<Region>& regions, KeptScene* kept)
        : m_options(options), m_layout(layout), m_regions(regions), m_kept(kept) {}
    /// Returns false if the scene is kept, since each rank keeps a fixed share of it.
    bool divides() const override { return m_kept == nullptr; }
    uint64_t preferred_bytes() const override { return tile_bytes; }
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        // Includes room for the proofs, which run with the same plan.
        return RegionBuffer::bytes(m_layout) +
               RoughSearch::bytes(m_options, m_layout.shape.bands, m_layout.region_pixels) +
               static_cast<uint64_t>(m_layout.region_pixels) * 5 * static_cast<uint64_t>(m_options.targets);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<ReadingWorker>(m_options, m_layout, m_regions, m_kept);
    }
    void stop(stream::Worker& worker) override {
        auto& w = static_cast<ReadingWorker&>(worker);
        valid += w.valid;
        if (before(w.best.score, w.best.position, best.score, best.position)) best = w.best;
        found.push_back(std::move(w.found));
    }
    int64_t valid = 0;
    Best best;
    std::vector<Found> found; ///< findings of each worker

  private:
    const Options& m_options;
    const Layout& m_layout;
    std::vector<Region>& m_regions;
    KeptScene* m_kept;
};

/// The working data and the result of the proof of a sequence.
struct Proof {
    Proof(const Options& o, const Sequence& s, const Layout& l, std::vector<Region>& r)
        : options(o), sequence(s), layout(l), regions(r), steps(s.steps.size()), smallest(s.smallest_score()),
          best(steps), bounds(static_cast<size_t>(l.regions()) * steps, -1.0f) {
        for (size_t j = 0; j < steps; ++j) {
            best[j].score = s.steps[j].score;
            best[j].position = s.steps[j].position;
        }
    }
    bool needs(int64_t region) const {
        const Region& r = regions[static_cast<size_t>(region)];
        return r.norm > 0 && (options.method == Method::gs || static_cast<double>(r.bound) >= smallest);
    }
    const Options& options;
    const Sequence& sequence;
    const Layout& layout;
    std::vector<Region>& regions;
    const size_t steps;
    const double smallest;
    std::vector<Best> best; ///< best pixel at each step; region -1: no pixel disproves the step
    /// Upper bounds of the scores outside the pool, [region][step]; -1 for regions that were not examined
    std::vector<float> bounds;
    std::vector<Found> found; ///< findings of each worker
    std::atomic<int64_t> pixels{0};
};

/// Applies the guessed sequence to the pixels of regions. Each worker has its own Prover.
class Prover {
  public:
    Prover(Proof& proof)
        : m_proof(proof), m_simd(simd_kernels()), m_bands(proof.layout.shape.bands), m_best(proof.best),
          m_up(proof.steps * static_cast<size_t>(proof.layout.region_pixels)),
          m_greatest(proof.steps * static_cast<size_t>(proof.layout.region_pixels / group)),
          m_active(static_cast<size_t>(proof.layout.region_pixels / group)),
          m_pooled(static_cast<size_t>(proof.layout.region_pixels)) {}

    /// Examines a region. For OSP, `score` is ||x||^2 - sum_k (q_k.x)^2 over the first applied[g] targets of
    /// group g. Where needed, the function applies the other proved targets and updates `score` and
    /// `applied`. If `applied` is null, `score` is ||x||^2, and the caller does not use it afterwards.
    void region(int64_t id, const Rect& core, int64_t first, int64_t count, const float* spectra,
                const double* norm, double* score, uint16_t* applied) {
        m_region = &m_proof.regions[static_cast<size_t>(id)];
        m_id = id;
        m_core = core;
        m_first = first;
        m_groups = static_cast<size_t>(round_up(count, group)) / group;
        m_spectra = spectra;
        std::fill(m_pooled.begin(), m_pooled.end(), 0);
        for (uint32_t pixel : m_region->pooled)
            m_pooled[pixel] = 1;
        m_proof.pixels.fetch_add(count, std::memory_order_relaxed);
        for (size_t g = 0; g < m_groups; ++g) {
            m_active[g] = 0;
            if (m_proof.options.method == Method::osp)
                osp_group(g, score + g * group, applied ? applied + g : nullptr);
            else
                gs_group(g, norm + g * group);
        }
        fill_pool();
    }

    /// Merges the results of this worker into the proof after its last region. One thread at a time.
    void merge() {
        for (size_t j = 0; j < m_best.size(); ++j) {
            Best& global = m_proof.best[j];
            if (m_best[j].region >= 0 &&
                before(m_best[j].score, m_best[j].position, global.score, global.position))
                global = std::move(m_best[j]);
        }
        m_proof.found.push_back(std::move(m_found));
    }

  private:
    float* up(size_t step, size_t g) { return &m_up[(step * m_active.size() + g) * group]; }
    float& greatest(size_t step, size_t g) { return m_greatest[step * m_active.size() + g]; }
    const float* data(size_t g) const { return m_spectra + g * group * static_cast<size_t>(m_bands); }

    void osp_group(size_t g, double* s, uint16_t* applied) {
        const Sequence& sequence = m_proof.sequence;
        const Basis& basis = sequence.basis;
        const double error = osp_error(m_bands, basis.size(), m_region->norm);
        double c[vectors * group];
        float bounds[group];
        int done = applied ? *applied : 0;
        double most = *std::max_element(s, s + group);
        const auto apply = [&](int until, double* scores, const auto& each) {
            while (done < until) {
                const double* q[vectors];
                const int count = std::min(vectors, until - done);
                for (int j = 0; j < count; ++j)
                    q[j] = basis.q(done + j);
                m_simd.dots(data(g), m_bands, q, count, c);
                done += count;
                for (int j = 0; j < count; ++j)
                    each(done - count + j + 1, m_simd.subtract_squares(c + j * group, error, scores, bounds));
                if (most + error < m_proof.smallest) return;
            }
        };
        if (most + error >= m_proof.smallest)
            apply(sequence.first, s, [&](int, double value) { most = value; });
        if (applied) *applied = static_cast<uint16_t>(done);
        if (most + error < m_proof.smallest) { // The group cannot disprove any step.
            freeze(g, 0, most + error);
            return;
        }
        double later[group];
        std::copy(s, s + group, later);
        static constexpr double zero[group] = {};
        most = m_simd.subtract_squares(zero, error, later, up(0, g));
        check(0, g, later, most, error);
        apply(sequence.first + static_cast<int>(m_proof.steps) - 1, later, [&](int targets, double value) {
            most = value;
            const auto step = static_cast<size_t>(targets - sequence.first);
            std::copy(bounds, bounds + group, up(step, g));
            check(step, g, later, most, error);
        });
        if (m_active[g] < m_proof.steps) freeze(g, m_active[g], most + error);
    }

    void gs_group(size_t g, const double* norm) {
        const Sequence& sequence = m_proof.sequence;
        double c[vectors * group], f[group];
        for (size_t step = 0; step < m_proof.steps;) {
            const double* p[vectors];
            const size_t count = std::min<size_t>(vectors, m_proof.steps - step);
            for (size_t j = 0; j < count; ++j)
                p[j] = sequence.p[step + j].data();
            m_simd.dots(data(g), m_bands, p, static_cast<int>(count), c);
            for (size_t j = 0; j < count; ++j, ++step) {
                const double error = gs_error(m_bands, sequence.p_squared[step], m_region->norm);
                const double most = m_simd.projections(
                    c + j * group, norm, m_proof.options.score == Score::sign, error, f, up(step, g));
                check(step, g, f, most, error);
            }
        }
    }

    /// Stops examining a group at `step`, since it cannot disprove this step or a later one. `bound` becomes
    /// the upper bound of its scores at these steps.
    void freeze(size_t g, size_t step, double bound) {
        const auto value = static_cast<float>(bound > 0 ? bound * (1 + 0x1p-22) + 0x1p-120 : 0.0);
        for (; step < m_proof.steps; ++step)
            greatest(step, g) = value;
    }

    /// Checks whether a pixel of the group disproves the step.
    void check(size_t step, size_t g, const double* scores, double most, double error) {
        m_active[g] = step + 1;
        greatest(step, g) =
            static_cast<float>(most > 0 ? (most + error) * (1 + 0x1p-22) + 0x1p-120 : error * 2 + 0x1p-120);
        Best& best = m_best[step];
        if (most + error < best.score) return;
        for (uint32_t i = 0; i < group; ++i) {
            if (scores[i] + error < best.score || scores[i] == minus_infinity) continue;
            const auto pixel = static_cast<uint32_t>(g * group) + i;
            // A pixel of the pool cannot beat the guess, which is the best choice from the pool.
            if (m_pooled[pixel]) continue;
            std::vector<float> x(static_cast<size_t>(m_bands));
            for (size_t b = 0; b < x.size(); ++b)
                x[b] = data(g)[b * group + i];
            const double decisive = decisive_score(step, x.data());
            const Position at = Layout::position(m_core, m_first + pixel);
            if (!before(decisive, at, best.score, best.position)) continue;
            best = Best{decisive, at, m_id, pixel, std::move(x)};
        }
    }
    double decisive_score(size_t step, const float* x) {
        // A basis of the step's size is made once and kept: several pixels may need it.
        const int size = m_proof.sequence.first + static_cast<int>(step);
        for (const Basis& b : m_bases)
            if (b.size() == size) return b.score(x, m_proof.options);
        m_bases.push_back(m_proof.sequence.basis.first(size));
        return m_bases.back().score(x, m_proof.options);
    }

    /// Adds the region's strongest pixels at each step to the pool. For OSP, also computes upper bounds for
    /// the other pixels.
    void fill_pool() {
        const size_t joining = m_proof.options.method == Method::osp ? osp_joining : gs_joining;
        const double share = m_proof.options.method == Method::osp ? 0.85 : 0.8;
        const auto bands = static_cast<size_t>(m_bands);
        for (size_t step = 0; step < m_proof.steps; ++step) {
            const auto cut = static_cast<float>(share * m_proof.sequence.steps[step].score);
            m_strong.clear();
            for (size_t g = 0; g < m_groups; ++g) {
                if (m_active[g] <= step || !(greatest(step, g) > cut)) continue;
                for (uint32_t i = 0; i < group; ++i)
                    if (up(step, g)[i] > cut) {
                        const auto pixel = static_cast<uint32_t>(g * group) + i;
                        if (!m_pooled[pixel]) m_strong.emplace_back(up(step, g)[i], pixel);
                    }
            }
            if (m_strong.size() > joining)
                std::nth_element(m_strong.begin(), m_strong.begin() + static_cast<ptrdiff_t>(joining),
                                 m_strong.end(),
                                 [](const auto& a, const auto& b) { return a.first > b.first; });
            for (size_t k = 0; k < std::min(joining, m_strong.size()); ++k) {
                if (m_region->pooled.size() >= m_proof.layout.region_cap) break;
                const uint32_t pixel = m_strong[k].second;
                m_region->pooled.push_back(pixel);
                m_pooled[pixel] = 1;
                m_found.add(Layout::position(m_core, m_first + pixel), m_id, pixel,
                            m_spectra + pixel / group * group * bands, pixel % group, m_bands);
            }
        }
        if (m_proof.options.method == Method::gs) return;
        // Groups without a pooled pixel are bounded by their greatest score; in other groups, the pooled
        // pixels are left out.
        m_holds_pooled.assign(m_groups, 0);
        for (uint32_t pixel : m_region->pooled)
            m_holds_pooled[pixel / group] = 1;
        float* const bounds = &m_proof.bounds[static_cast<size_t>(m_id) * m_proof.steps];
        for (size_t step = 0; step < m_proof.steps; ++step) {
            float bound = 0;
            for (size_t g = 0; g < m_groups; ++g) {
                if (greatest(step, g) <= bound) continue;
                if (!m_holds_pooled[g] || m_active[g] <= step) {
                    bound = greatest(step, g);
                    continue;
                }
                for (uint32_t i = 0; i < group; ++i)
                    if (up(step, g)[i] > bound && !m_pooled[g * group + i]) bound = up(step, g)[i];
            }
            bounds[step] = bound;
        }
    }

    Proof& m_proof;
    const SimdKernels& m_simd;
    const int m_bands;
    std::vector<Best> m_best;
    Found m_found;
    /// [step][pixel]: an upper bound of the score, where the group was still active
    std::vector<float> m_up;
    std::vector<float> m_greatest; ///< [step][group]: an upper bound of the group's scores
    std::vector<size_t> m_active;  ///< steps that were computed for each group
    std::vector<char> m_pooled;    ///< per pixel: whether it is in the pool
    std::vector<char> m_holds_pooled;
    std::vector<std::pair<float, uint32_t>> m_strong;
    std::vector<Basis> m_bases;
    Region* m_region = nullptr;
    int64_t m_id = 0, m_first = 0;
    Rect m_core;
    size_t m_groups = 0;
    const float* m_spectra = nullptr;
};

/// The proof in passes that read the tiles again.
class StreamedProof final : public stream::Operation {
  public:
    explicit StreamedProof(Proof& proof) : m_proof(proof) {}
    bool divides() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Lane>(m_proof);
    }
    void stop(stream::Worker& worker) override { static_cast<Lane&>(worker).prover.merge(); }

  private:
    struct Lane final : stream::Worker {
        explicit Lane(Proof& p) : proof(p), prover(p), buffer(p.layout, nullptr) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>&) override {
            const auto t = static_cast<size_t>(tile.index);
            for (int64_t id = proof.layout.first_region[t]; id < proof.layout.first_region[t + 1]; ++id) {
                if (!proof.needs(id)) continue;
                const auto [first, count] = proof.layout.extent(id, tile.index);
                buffer.load(tile, in, first, count);
                prover.region(id, tile.core, first, count, buffer.spectra, buffer.norm, buffer.norm, nullptr);
            }
        }
        Proof& proof;
        Prover prover;
        RegionBuffer buffer;
    };
    Proof& m_proof;
};

class Detector {
  public:
    Detector(const stream::CubeSource& source, const Options& options, const stream::PassOptions& pass)
        : m_source(source), m_options(options), m_pass(pass), m_pool(source.shape().bands) {
        if (options.targets < 1)
            throw UsageError("-t: " + std::to_string(options.targets) + " is not a number of targets",
                             "Use 1 or more.");
        m_layout.shape = source.shape();
        m_layout.rank = m_ranks.rank();
        m_layout.ranks = pass.ranks > 0 ? pass.ranks : m_ranks.size();
    }

    MemoryPlan planned() {
        plan();
        const Reading reading(m_options, m_layout, m_regions, nullptr);
        MemoryPlan p;
        p.in_memory = m_keep;
        p.tiles = m_layout.plan;
        p.pool_bytes = m_pool_bytes;
        p.buffer_bytes = stream::plan_bytes(m_source, reading, m_layout.plan);
        if (m_keep)
            p.scene_bytes =
                static_cast<uint64_t>(m_layout.most_kept) * KeptScene::bytes_per_pixel(m_layout.shape.bands);
        return p;
    }

    Detection run() {
        plan();
        m_team.emplace(std::max(1, m_pass.lanes));
        read();
        if (m_result.valid_pixels > 0) search();
        m_result.cost.in_memory = m_keep;
        m_result.cost.tiles = m_layout.plan.size();
        m_result.cost.scan_equivalents =
            static_cast<double>(m_pixels) / static_cast<double>(m_layout.shape.pixels());
        m_result.cost.pool = m_ranks.sum("candidates", m_pool.size());
        if (m_pass.progress) m_pass.progress(1.0);
        return std::move(m_result);
    }

  private:
    /// Divides the memory among the kept scene, the pool, and the workers' tiles. With several ranks, each
    /// rank keeps a share of the scene. The scene is kept only if it fits. All ranks make the same plan.
    void plan() {
        const auto shape = m_layout.shape;
        const uint64_t each = CandidatePool::bytes_each(shape.bands),
                       pixels = static_cast<uint64_t>(shape.pixels());
        const auto ranks = static_cast<uint64_t>(m_layout.ranks);
        const uint64_t scene = (pixels + ranks - 1) / ranks * KeptScene::bytes_per_pixel(shape.bands);
        const uint64_t all_pool = std::min<uint64_t>(pixels, uint64_t{1} << 17) * each;
        for (const bool keep : {true, false}) {
            uint64_t pool = std::min(all_pool, m_pass.memory / 4);
            if (keep) {
                if (!m_options.keep_scene || scene > m_pass.memory) continue;
                pool = std::min(pool, (m_pass.memory - scene) / 2);
            }
            // Regions grow, up to largest_region, until each can add three times as many pixels as there are
            // targets to the pool.
            const auto capacity = static_cast<int64_t>(pool / each);
            const int64_t wanted = 3 * std::min<int64_t>(m_options.targets, shape.bands);
            m_layout.region_pixels = smallest_region;
            const auto regions = [&] {
                return (shape.pixels() + m_layout.region_pixels - 1) / m_layout.region_pixels;
            };
            while (regions() * wanted > capacity && m_layout.region_pixels < largest_region)
                m_layout.region_pixels *= 2;
            m_layout.region_cap =
                static_cast<size_t>(std::clamp<int64_t>(capacity / regions(), 1, 2 * wanted));
            const uint64_t fixed = pool + static_cast<uint64_t>(regions()) * 200 + (keep ? scene : 0);
            if (fixed >= m_pass.memory) continue;
            auto options = m_pass;
            options.memory = m_pass.memory - fixed;
            const Reading reading(m_options, m_layout, m_regions, nullptr);
            TilePlan tiles;
            try {
                tiles = stream::plan_pass(m_source, reading, options);
            } catch (const Error&) {
                if (keep) continue; // no room for a tile in addition to the scene
                throw;
            }
            m_layout.set_plan(tiles);
            const uint64_t kept =
                static_cast<uint64_t>(m_layout.most_kept) * KeptScene::bytes_per_pixel(shape.bands);
            if (keep && kept + fixed - scene + stream::plan_bytes(m_source, reading, tiles) > m_pass.memory)
                continue;
            m_keep = keep;
            m_pool_bytes = pool;
            m_regions.resize(static_cast<size_t>(m_layout.regions()));
            // Reserved memory that is never touched costs nothing.
            m_pool.reserve(
                std::min(capacity, m_layout.regions() * static_cast<int64_t>(m_layout.region_cap)));
            return;
        }
        throw Error("-memory " + format_byte_size(m_pass.memory) + " is too small to search this scene",
                    "Use a larger -memory.");
    }

    void read() {
        KeptScene* kept = nullptr;
        if (m_keep) {
            const auto pixels = static_cast<size_t>(m_layout.first_pixel.back());
            m_kept.spectra = HostBuffer<float>(stream::small_page_allocator(),
                                               pixels * static_cast<size_t>(m_layout.shape.bands));
            m_kept.norm = HostBuffer<double>(pixels);
            m_kept.score = HostBuffer<double>(pixels);
            m_kept.applied.assign(pixels / group, 0);
            kept = &m_kept;
        }
        Reading reading(m_options, m_layout, m_regions, kept);
        std::vector<int64_t> mine;
        for (int64_t t = 0; t < m_layout.plan.size(); ++t)
            if (m_layout.holds(t)) mine.push_back(t);
        auto options = m_pass;
        options.name = "read";
        options.only = m_keep && m_ranks.several() ? &mine : nullptr;
        if (m_pass.progress) options.progress = [this](double share) { m_pass.progress(0.5 * share); };
        auto pass = stream::run_pass(m_source, reading, {}, m_layout.plan, options);
        if (m_keep) stream::add_up(m_ranks, pass, 0);
        report(pass, m_layout.shape.pixels());
        m_result.cost.tile_visits += m_layout.plan.size();
        // The brightest pixel of each region is in the pool, and so is this rank's first target.
        std::vector<Best> first{reading.best};
        take_found(reading.found);
        for (int64_t i = 0; i < m_pool.size() && first.front().spectrum.empty(); ++i)
            if (m_pool.position(i) == reading.best.position) first.front().spectrum = m_pool.spectrum(i);
        share_best(m_ranks, first);
        m_first = std::move(first.front());
        share_norms(m_ranks, m_regions);
        m_result.valid_pixels = m_ranks.sum("valid pixels", reading.valid);
        m_result.invalid_pixels = m_layout.shape.pixels() - m_result.valid_pixels;
    }

    /// Adds the findings of this rank's workers to its pool. If the scene is kept, each region is examined by
    /// only one rank, so the other ranks need not know its pixels in the pool.
    void take_found(std::vector<Found>& found) {
        if (!m_keep) share_pooled(m_ranks, found, m_regions);
        pool_findings(std::move(found), m_pool, *m_team);
    }
    /// Puts a pixel that all ranks know into the pool of one rank, unless a pool already has it.
    void take_into_pool(const Best& best) {
        const bool mine = !m_ranks.several() || (m_keep ? m_layout.holds(m_layout.tile_of(best.region))
                                                        : best.region % m_ranks.size() == m_ranks.rank());
        if (m_keep && !mine) return;
        Region& region = m_regions[static_cast<size_t>(best.region)];
        if (region.is_pooled(best.pixel)) return;
        region.pooled.push_back(best.pixel);
        if (mine) m_pool.add(best.position, best.spectrum.data());
    }

    void search() {
        Basis basis(m_layout.shape.bands);
        std::vector<Position> found;
        const auto take = [&](const Position& at, double score, std::vector<float> x) {
            found.push_back(at);
            basis.add(x.data());
            m_result.targets.push_back({at.line, at.sample, score, std::move(x)});
        };
        take(m_first.position, m_first.score, std::move(m_first.spectrum));
        CandidatePool::Share share;
        if (m_ranks.several()) share = [this](Step& step) { share_step(m_ranks, step); };
        const double limit = rank_limit * m_first.score;
        while (static_cast<int>(found.size()) < m_options.targets) {
            const Sequence sequence = m_pool.guess(basis, found, m_options, m_first.score, *m_team, share);
            if (sequence.steps.empty()) {
                end(Ending::p_vanished);
                return;
            }
            Proof proof(m_options, sequence, m_layout, m_regions);
            scan(proof);
            share_best(m_ranks, proof.best);
            take_found(proof.found);
            size_t held = 0;
            while (held < proof.steps && proof.best[held].region < 0)
                ++held;
            for (int64_t id = 0; id < m_layout.regions(); ++id) {
                const float bound =
                    proof.bounds[static_cast<size_t>(id) * proof.steps + std::min(held, proof.steps - 1)];
                Region& region = m_regions[static_cast<size_t>(id)];
                if (bound >= 0) region.bound = std::min(region.bound, bound);
            }
            share_bounds(m_ranks, m_regions);
            for (size_t j = 0; j < held; ++j) {
                const Step& step = sequence.steps[j];
                if (step.ends) {
                    end(!step.qualifies() && m_options.method == Method::gs && m_options.score == Score::sign
                            ? Ending::nothing_positive
                            : Ending::rank);
                    return;
                }
                take(step.position, step.score, step.spectrum);
            }
            if (held < proof.steps) {
                Best& best = proof.best[held];
                take_into_pool(best);
                if (basis.squared_residual(best.spectrum.data()) < limit) {
                    end(Ending::rank);
                    return;
                }
                take(best.position, best.score, std::move(best.spectrum));
            }
            // The best pixels at later steps follow a wrong guess, so they are not targets, but they are good
            // candidates.
            for (size_t j = held + 1; j < proof.steps; ++j)
                if (proof.best[j].region >= 0) take_into_pool(proof.best[j]);
            if (m_pass.progress)
                m_pass.progress(0.5 + 0.5 * static_cast<double>(found.size()) / m_options.targets);
        }
    }

    void scan(Proof& proof) {
        if (m_keep) {
            scan_kept(proof);
            return;
        }
        std::vector<int64_t> tiles;
        for (int64_t t = 0; t < m_layout.plan.size(); ++t)
            for (int64_t id = m_layout.first_region[static_cast<size_t>(t)];
                 id < m_layout.first_region[static_cast<size_t>(t) + 1]; ++id)
                if (proof.needs(id)) {
                    tiles.push_back(t);
                    break;
                }
        StreamedProof operation(proof);
        auto options = m_pass;
        options.name = "prove " + std::to_string(m_result.passes.size());
        options.only = &tiles;
        options.progress = nullptr;
        int64_t pixels = 0;
        for (int64_t t : tiles)
            pixels += m_layout.plan.tile(t).core.area();
        report(stream::run_pass(m_source, operation, {}, m_layout.plan, options), pixels);
        m_result.cost.tile_visits += static_cast<int64_t>(tiles.size());
    }

    void scan_kept(Proof& proof) {
        const auto begin = std::chrono::steady_clock::now();
        const int lanes = std::max(1, m_pass.lanes);
        std::vector<std::unique_ptr<Prover>> provers;
        for (int i = 0; i < lanes; ++i)
            provers.push_back(std::make_unique<Prover>(proof));
        parallel::for_each(m_layout.regions(), lanes, m_pass.cancel, [&](int64_t id, int member) {
            const int64_t t = m_layout.tile_of(id);
            if (!m_layout.holds(t) || !proof.needs(id)) return;
            const auto [first, count] = m_layout.extent(id, t);
            const int64_t at = m_layout.first_pixel[static_cast<size_t>(t)] + first;
            provers[static_cast<size_t>(member)]->region(id, m_layout.plan.tile(t).core, first, count,
                                                         m_kept.spectra.data() + at * m_layout.shape.bands,
                                                         m_kept.norm.data() + at, m_kept.score.data() + at,
                                                         m_kept.applied.data() + at / group);
        });
        for (auto& prover : provers)
            prover->merge();
        stream::PassReport pass;
        pass.name = "prove " + std::to_string(m_result.passes.size()) + " (in memory)";
        pass.lanes = lanes;
        pass.seconds = pass.compute_seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        stream::add_up(m_ranks, pass, 0);
        report(pass, m_ranks.sum("pixels", proof.pixels));
    }

    void report(const stream::PassReport& pass, int64_t pixels) {
        m_result.passes.push_back(pass);
        ++m_result.cost.passes;
        m_pixels += pixels;
    }

    void end(Ending ending) {
        m_result.warning = ending_text(ending, m_result.targets.size(), m_options.targets);
    }

    const stream::CubeSource& m_source;
    const Options m_options;
    const stream::PassOptions m_pass;
    parallel::Group& m_ranks = parallel::group();
    Layout m_layout;
    std::vector<Region> m_regions;
    CandidatePool m_pool;
    std::optional<Team> m_team; ///< threads for the work between passes
    KeptScene m_kept;
    bool m_keep = false;
    uint64_t m_pool_bytes = 0;
    Best m_first;
    int64_t m_pixels = 0;
    Detection m_result;
};

} // namespace

Detection detect(const stream::CubeSource& source, const Options& options, const stream::PassOptions& pass) {
    return Detector(source, options, pass).run();
}

MemoryPlan plan_detection(const stream::CubeSource& source, const Options& options,
                          const stream::PassOptions& pass) {
    return Detector(source, options, pass).planned();
}

const char* simd_target() { return simd_kernels().target; }

namespace {

class CpuBackend final : public Backend {
  public:
    bool fits(uint64_t, const stream::CubeShape&, const Options&) const override { return true; }
    Detection detect(const stream::CubeSource& source, const Options& options,
                     const stream::PassOptions& pass) override {
        return atdca::detect(source, options, pass);
    }
    std::unique_ptr<stream::Operation> make_classification(const std::vector<std::vector<float>>& spectra,
                                                           const ClassifyOptions& options) override {
        return atdca::make_classification(spectra, options);
    }
};

} // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

} // namespace hsi::atdca
