// SPDX-License-Identifier: MIT
#include "cluster/cluster.h"

#include "cluster/device_scene.h"
#include "cluster/moves.h"
#include "cluster/sampling.h"
#include "cluster/walk.h"
#include "core/byte_pack.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/valid_pixel.h"
#include "math/simd_target.h"
#include "parallel/group.h"
#include "parallel/threads.h"
#include "stream/empty_source.h"
#include "stream/statistics_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace hsi::cluster {
namespace {

/// Returns the memory of a visitor that finds the nearest centres.
uint64_t bytes_beside(int bands, int count) {
    return Look::bytes(bands, count) + Screen::bytes(bands, count);
}

/// Returns a mask of the pixels that have a label.
uint32_t valid_bits(const uint16_t* labels, int count) {
    uint32_t bits = 0;
    for (int i = 0; i < count; ++i)
        bits |= uint32_t{labels[i] != 0} << i;
    return bits;
}

/// Adds the squared distances of the labelled pixels from their centres to `inertia`.
void add_squares(Look& look, const Centres& centres, const uint16_t* labels, int count,
                 math::ExactSums& inertia) {
    const auto& squares = look.squares(centres, labels);
    for (int i = 0; i < count; ++i)
        if (labels[i] != 0) inertia.add(0, &squares[static_cast<size_t>(i)], 1);
}

/// Assigns labels to pixels and collects the moves; on request, also the inertia.
class Assigner final : public Visitor {
  public:
    /// bounds: bounds for groups of kept pixels; null if the scene is not kept
    Assigner(const Centres& centres, Distance distance, bool first, bool with_inertia, Bounds* bounds)
        : moves(static_cast<size_t>(centres.count), stride_of(centres.bands, distance)),
          m_screen(centres, distance), m_stride(stride_of(centres.bands, distance)), m_first(first),
          m_with_inertia(with_inertia), m_bounds(bounds), m_look(centres.bands, distance, centres.count),
          m_pixel(m_stride) {}
    void take(const float* from, ptrdiff_t band_stride, int64_t pixel, int count, uint16_t* labels) override {
        const auto at = static_cast<size_t>(pixel / group);
        if (m_bounds != nullptr && !m_first && m_bounds->stays(at, labels, count) && !m_with_inertia) return;
        m_look.take(from, band_stride, count);
        m_look.find_nearest(m_screen, valid_bits(labels, count));
        if (m_bounds != nullptr) m_bounds->set(at, m_look.gap());
        for (int i = 0; i < count; ++i) {
            if (labels[i] == 0) continue;
            const auto to = static_cast<size_t>(m_look.index(i)), old = static_cast<size_t>(labels[i]) - 1;
            if (to == old && !m_first) continue;
            labels[i] = static_cast<uint16_t>(to + 1);
            ++moves.moved;
            ++moves.pixels[to];
            m_look.get(i, m_pixel.data());
            moves.sums.add(to * m_stride, m_pixel.data(), m_stride);
            if (m_first) continue;
            --moves.pixels[old];
            for (double& v : m_pixel)
                v = -v;
            moves.sums.add(old * m_stride, m_pixel.data(), m_stride);
        }
        if (m_with_inertia) add_squares(m_look, m_screen.centres(), labels, count, moves.inertia);
    }
    Moves moves;

  private:
    const Screen m_screen;
    const size_t m_stride;
    const bool m_first, m_with_inertia;
    Bounds* const m_bounds;
    Look m_look;
    std::vector<double> m_pixel;
};

class Outliers final : public Visitor {
  public:
    Outliers(const Centres& centres, Distance distance, size_t most)
        : farthest(most), m_screen(centres, distance), m_look(centres.bands, distance, centres.count),
          m_stride(stride_of(centres.bands, distance)) {}
    void take(const float* from, ptrdiff_t band_stride, int64_t pixel, int count, uint16_t* labels) override {
        m_look.take(from, band_stride, count);
        m_look.find_nearest(m_screen, valid_bits(labels, count));
        const auto& distances = m_look.distances(m_screen.centres());
        for (int i = 0; i < count; ++i) {
            if (labels[i] == 0) continue;
            Outlier one{distances[static_cast<size_t>(i)], pixel + i, labels[i], {}};
            if (!farthest.takes(one)) continue;
            one.values.resize(m_stride);
            m_look.get(i, one.values.data());
            farthest.add(std::move(one));
        }
    }
    OutlierList farthest;

  private:
    const Screen m_screen;
    Look m_look;
    const size_t m_stride;
};

/// Writes labels from memory.
class LabelOperation final : public stream::Operation {
  public:
    LabelOperation(const std::vector<uint16_t>& labels, int64_t samples)
        : m_labels(labels), m_samples(samples) {}
    std::vector<int> output_bands() const override { return {1}; }
    bool divides() const override { return true; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Copier>(m_labels.data(), m_samples);
    }

  private:
    struct Copier final : stream::Worker {
        Copier(const uint16_t* all, int64_t width) : labels(all), samples(width) {}
        void process(const Tile& tile, const CubeView<float>&,
                     const std::vector<CubeView<float>>& out) override {
            for (int64_t line = 0; line < tile.core.h; ++line) {
                const uint16_t* const from = labels + (tile.core.y + line) * samples + tile.core.x;
                float* const to = out[0].row(0, line);
                for (int64_t s = 0; s < tile.core.w; ++s)
                    to[s] = from[s] != 0 ? static_cast<float>(from[s]) : no_value;
            }
        }
        const uint16_t* labels;
        int64_t samples;
    };
    const std::vector<uint16_t>& m_labels;
    const int64_t m_samples;
};

/// Assigns labels by the nearest centre.
class AssignOperation final : public stream::Operation {
  public:
    AssignOperation(Centres centres, Distance distance)
        : m_centres(std::move(centres)), m_distance(distance) {}
    std::vector<int> output_bands() const override { return {1}; }
    bool divides() const override { return true; }
    bool reads_in_place() const override { return true; }
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return bytes_beside(m_centres.bands, m_centres.count) +
               static_cast<uint64_t>(limits.core_samples) * 2 * sizeof(float);
    }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<Labeller>(m_centres, m_distance);
    }

  private:
    struct Labeller final : stream::Worker {
        Labeller(const Centres& c, Distance distance)
            : screen(c, distance), look(c.bands, distance, c.count) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>& out) override {
            const int64_t w = tile.core.w;
            for (int64_t line = 0; line < tile.core.h; ++line) {
                row.start(static_cast<size_t>(w));
                for (int b = 0; b < in.bands; ++b)
                    row.look(in.row(b, line));
                row.judge();
                for (int64_t first = 0; first < w; first += group) {
                    const int count = static_cast<int>(std::min<int64_t>(group, w - first));
                    uint32_t valid = 0;
                    for (int i = 0; i < count; ++i)
                        valid |= uint32_t{row.is_valid(static_cast<size_t>(first + i))} << i;
                    look.take(in.row(0, line) + first, in.band_stride, count);
                    look.find_nearest(screen, valid);
                    for (int i = 0; i < count; ++i)
                        out[0].row(0, line)[first + i] =
                            (valid >> i & 1) != 0 ? static_cast<float>(look.index(i) + 1) : no_value;
                }
            }
        }
        const Screen screen;
        Look look;
        PixelRow row;
    };
    const Centres m_centres;
    const Distance m_distance;
};

} // namespace

void Moves::add(const Moves& other) {
    sums.add(other.sums);
    for (size_t k = 0; k < pixels.size(); ++k)
        pixels[k] += other.pixels[k];
    inertia.add(other.inertia);
    moved += other.moved;
}

void Moves::exchange(parallel::Group& ranks) {
    if (!ranks.several()) return;
    stream::unite(ranks, "sums of clusters", sums);
    ranks.add_up("pixels of clusters", pixels);
    stream::unite(ranks, "inertia", inertia);
    moved = ranks.sum("pixels that moved", moved);
}

uint64_t Moves::bytes(size_t clusters, size_t stride) {
    // The sums are over floats, over multiples of 2^-40 below 1, or over lengths.
    return math::ExactSums::most_bytes(clusters * stride, -149, 128 + 40) + clusters * sizeof(int64_t);
}

void OutlierList::add(Outlier one) {
    if (m_list.size() == m_most) m_list.pop_back();
    const auto at =
        std::find_if(m_list.begin(), m_list.end(), [&](const Outlier& o) { return one.before(o); });
    m_list.insert(at, std::move(one));
}

void OutlierList::exchange(parallel::Group& ranks) {
    if (!ranks.several()) return;
    BytePacker out;
    for (const auto& one : m_list)
        out.put(one.distance).put(one.pixel).put(one.label).put(one.values);
    const auto all = ranks.all("outliers", out.take());
    m_list.clear();
    for (const auto& bytes : all)
        for (ByteUnpacker in(bytes); !in.empty();) {
            Outlier one;
            in.get(one.distance);
            in.get(one.pixel);
            in.get(one.label);
            in.get(one.values);
            if (takes(one)) add(std::move(one));
        }
}

struct Clustering::State {
    State(const stream::CubeSource& source, const Options& o, MakePass make, std::unique_ptr<DeviceScene> on)
        : options(o), make_pass(std::move(make)), scene{source, make_pass, {}, {}, 0, {}},
          device(std::move(on)) {}
    const Options options;
    const MakePass make_pass;
    Scene scene;
    const std::unique_ptr<DeviceScene> device; ///< null if the CPU assigns pixels
    int64_t valid = 0, invalid = 0;
    std::vector<float> sample; ///< spectra, [pixel][band], the lowest Candidate first
    Bounds bounds;             ///< bounds for groups of kept pixels; empty if the scene is not kept
    size_t stride() const { return stride_of(scene.source.shape().bands, options.distance); }

    /// with_inertia: the CPU also computes the inertia, which takes a fraction of the time for the labels. A
    /// device never computes it.
    Moves assign(const Centres& centres, bool first, bool with_inertia) {
        const auto k = static_cast<size_t>(centres.count);
        Moves all(k, stride());
        if (device) {
            const auto pass = make_pass("iteration");
            if (pass.cancel != nullptr && pass.cancel->requested()) throw Cancelled();
            device->assign(centres, first, all);
            if (pass.progress) pass.progress(1.0);
            return all;
        }
        Bounds* const known = bounds.gap.empty() ? nullptr : &bounds;
        walk(
            scene, "iteration", Moves::bytes(k, stride()) + bytes_beside(centres.bands, centres.count),
            [&] { return std::make_unique<Assigner>(centres, options.distance, first, with_inertia, known); },
            [&](Visitor& visitor) { all.add(static_cast<Assigner&>(visitor).moves); });
        all.exchange(parallel::group());
        return all;
    }
    std::vector<Outlier> farthest(const Centres& centres, size_t most) {
        if (device) return farthest_on_device(centres.bands, most);
        OutlierList all(most);
        walk(
            scene, "empty clusters",
            bytes_beside(centres.bands, centres.count) + most * (stride() + 8) * sizeof(double),
            [&] { return std::make_unique<Outliers>(centres, options.distance, most); },
            [&](Visitor& visitor) {
                for (auto& one : static_cast<Outliers&>(visitor).farthest.list())
                    if (all.takes(one)) all.add(std::move(one));
            });
        all.exchange(parallel::group());
        return std::move(all.list());
    }
    std::vector<Outlier> farthest_on_device(int bands, size_t most);
    /// Computes the inertia on the CPU, from the values on the device and the present labels. Used for
    /// angles, for which the device has only cosines.
    double inertia_on_device(const Centres& centres);
    /// Copies the labels from the device, and calls f(pixel, squared distance, |x|) for all valid pixels in
    /// order. The distances are those of the last assignment on the device. |x| is 0 unless with_lengths.
    template <class F>
    void for_each_on_device(bool with_lengths, const F& f);
    /// Moves centres to the means of the clusters. An empty cluster takes a pixel far from its centre.
    /// \return the number of empty clusters that took a pixel
    int64_t move_centres(Centres& centres, const math::ExactSums& sums, const std::vector<int64_t>& pixels);
};

namespace {

/// Sets a centre to the mean of the cluster's pixels. For angles, the mean is divided by its length; if the
/// length is 0, the centre is unchanged.
void set_centre(double* centre, const math::ExactSums& sums, size_t first, int bands, int64_t pixels,
                Distance distance) {
    std::vector<double> mean(static_cast<size_t>(bands));
    double squared = 0;
    for (size_t b = 0; b < mean.size(); ++b) {
        mean[b] = sums.value(first + b) / static_cast<double>(pixels);
        squared += mean[b] * mean[b];
    }
    if (distance == Distance::angle) {
        if (!(squared > 0)) return;
        const double length = std::sqrt(squared);
        for (double& v : mean)
            v /= length;
    }
    std::copy(mean.begin(), mean.end(), centre);
}

} // namespace

int64_t Clustering::State::move_centres(Centres& centres, const math::ExactSums& sums,
                                        const std::vector<int64_t>& pixels) {
    const int bands = centres.bands;
    const auto empty = static_cast<size_t>(std::count(pixels.begin(), pixels.end(), 0));
    const auto set_all = [&](const math::ExactSums& of, const std::vector<int64_t>& counts) {
        for (size_t k = 0; k < counts.size(); ++k)
            if (counts[k] > 0)
                set_centre(centres.values.data() + k * static_cast<size_t>(bands), of, k * stride(), bands,
                           counts[k], options.distance);
    };
    if (empty == 0) {
        set_all(sums, pixels);
        return 0;
    }
    const auto far = farthest(centres, empty);
    math::ExactSums changed(sums.size());
    changed.add(sums);
    auto counts = pixels;
    int64_t relocated = 0;
    size_t next = 0;
    for (size_t k = 0; k < pixels.size() && next < far.size(); ++k) {
        if (pixels[k] != 0) continue;
        const Outlier& one = far[next++];
        if (!(one.distance > 0)) break; // All remaining pixels are equal to their centres.
        const size_t from = static_cast<size_t>(one.label) - 1;
        changed.add(k * stride(), one.values.data(), stride());
        auto less = one.values;
        for (double& v : less)
            v = -v;
        changed.add(from * stride(), less.data(), stride());
        ++counts[k];
        --counts[from];
        ++relocated;
    }
    set_all(changed, counts);
    return relocated;
}

template <class F>
void Clustering::State::for_each_on_device(bool with_lengths, const F& f) {
    constexpr int64_t part = 1 << 20;
    device->labels(scene.labels);
    const auto pixels = static_cast<int64_t>(scene.labels.size());
    std::vector<double> best(static_cast<size_t>(std::min(part, pixels))),
        length(with_lengths ? best.size() : 0);
    for (int64_t first = 0; first < pixels; first += part) {
        const int64_t count = std::min(part, pixels - first);
        device->best(first, count, best.data());
        if (with_lengths) device->lengths(first, count, length.data());
        for (int64_t i = 0; i < count; ++i) {
            if (scene.labels[static_cast<size_t>(first + i)] == 0) continue;
            const double v = best[static_cast<size_t>(i)];
            f(first + i, options.distance == Distance::angle ? 2 - 2 * v : v,
              with_lengths ? length[static_cast<size_t>(i)] : 0.0);
        }
    }
}

std::vector<Outlier> Clustering::State::farthest_on_device(int bands, size_t most) {
    OutlierList all(most);
    for_each_on_device(false, [&](int64_t pixel, double distance, double) {
        Outlier one{distance, pixel, scene.labels[static_cast<size_t>(pixel)], {}};
        if (all.takes(one)) all.add(std::move(one));
    });
    std::vector<int64_t> pixels;
    for (const auto& one : all.list())
        pixels.push_back(one.pixel);
    std::vector<float> values(pixels.size() * static_cast<size_t>(bands));
    device->get(pixels, values.data());
    Look look(bands, options.distance, 0);
    for (size_t i = 0; i < pixels.size(); ++i) {
        look.take(values.data() + i * static_cast<size_t>(bands), 1, 1);
        all.list()[i].values.resize(stride());
        look.get(0, all.list()[i].values.data());
    }
    return std::move(all.list());
}

double Clustering::State::inertia_on_device(const Centres& centres) {
    constexpr int64_t most = 1 << 21; // values at a time
    const auto pass = make_pass("iteration");
    const int64_t bands = centres.bands, pixels = static_cast<int64_t>(scene.labels.size()),
                  part = std::max<int64_t>(most / bands / group, 1) * group;
    struct Member {
        Look look;
        std::vector<float> values; ///< [band][group]
        math::ExactSums inertia{1};
    };
    const auto lanes = static_cast<size_t>(std::max(pass.lanes, 1));
    std::vector<Member> members;
    members.reserve(lanes);
    for (size_t i = 0; i < lanes; ++i)
        members.push_back({Look(centres.bands, options.distance, 0),
                           std::vector<float>(static_cast<size_t>(bands * group)), math::ExactSums(1)});
    std::vector<int64_t> numbers;
    std::vector<float> values; // [pixel][band]
    int64_t first = 0;
    const auto take = [&](int64_t g, int m) {
        Member& member = members[static_cast<size_t>(m)];
        const int64_t pixel = g * group, left = static_cast<int64_t>(numbers.size()) - pixel;
        const int count = static_cast<int>(std::min<int64_t>(group, left));
        for (int64_t i = 0; i < count; ++i)
            for (int64_t b = 0; b < bands; ++b)
                member.values[static_cast<size_t>(b * group + i)] =
                    values[static_cast<size_t>((pixel + i) * bands + b)];
        member.look.take(member.values.data(), group, count);
        add_squares(member.look, centres, scene.labels.data() + first + pixel, count, member.inertia);
    };
    for (; first < pixels; first += part) {
        const int64_t here = std::min(part, pixels - first);
        numbers.resize(static_cast<size_t>(here));
        std::iota(numbers.begin(), numbers.end(), first);
        values.resize(numbers.size() * static_cast<size_t>(bands));
        device->get(numbers, values.data());
        parallel::for_each((here + group - 1) / group, static_cast<int>(members.size()), pass.cancel, take);
    }
    math::ExactSums all(1);
    for (const Member& member : members)
        all.add(member.inertia);
    return all.value(0);
}

Clustering::Clustering(const stream::CubeSource& source, const Options& options, MakePass make_pass)
    : Clustering(source, options, std::move(make_pass), nullptr) {}

Clustering::Clustering(const stream::CubeSource& source, const Options& options, MakePass make_pass,
                       std::unique_ptr<DeviceScene> device)
    : m(std::make_unique<State>(source, options, std::move(make_pass), std::move(device))) {}

Clustering::~Clustering() = default;

int64_t Clustering::read() {
    auto& scene = m->scene;
    const auto shape = scene.source.shape();
    auto pass = m->make_pass("start");
    const uint64_t memory = pass.memory, labels = static_cast<uint64_t>(shape.pixels()) * sizeof(uint16_t);
    if (labels > memory / 2)
        throw Error("the labels of " + std::to_string(shape.pixels()) + " pixels take " +
                        format_byte_size(labels) + ", more than half of the remaining memory",
                    "Give more -memory, or take a part of the scene with -srcwin.");
    scene.labels.assign(static_cast<size_t>(shape.pixels()), 0);
    scene.held = labels;
    // With several ranks, the scene is not kept: each rank reads its tiles again.
    if (const uint64_t all = Kept::bytes(shape);
        !m->device && !parallel::group().several() && all + labels <= memory / 2) {
        scene.kept = Kept(shape);
        m->bounds.gap.assign(static_cast<size_t>(scene.kept.groups()), 0.0f);
        scene.held += all + Bounds::bytes(scene.kept.groups());
    }
    pass.memory -= scene.held;
    SampleScan scan(shape, m->options, scene.kept.any() ? &scene.kept : nullptr, m->device.get(),
                    scene.labels.data());
    scene.passes.push_back(stream::run_pass(scene.source, scan, {}, pass));
    m->valid = scan.valid();
    m->invalid = scan.invalid();
    Sample& sample = scan.sample();
    sample.sort();
    const auto bands = static_cast<size_t>(shape.bands);
    m->sample.resize(sample.size() * bands);
    if (m->device) {
        m->device->begin(scene.labels);
        std::vector<int64_t> pixels;
        for (size_t i = 0; i < sample.size(); ++i)
            pixels.push_back(sample.at(i).pixel);
        m->device->get(pixels, m->sample.data());
        return m->valid;
    }
    for (size_t i = 0; i < sample.size(); ++i) {
        float* const to = m->sample.data() + i * bands;
        if (scene.kept.any())
            scene.kept.get(sample.at(i).pixel, to);
        else
            std::copy_n(sample.spectrum(i), bands, to);
    }
    return m->valid;
}

int64_t Clustering::invalid() const { return m->invalid; }

bool Clustering::in_memory() const { return m->device || m->scene.kept.any(); }

Centres Clustering::start(int count) const {
    return choose_centres(m->sample, m->scene.source.shape().bands, m->options, count);
}

Result Clustering::refine(Centres centres) {
    m->sample = {};
    const auto k = static_cast<size_t>(centres.count), stride = m->stride();
    Result found;
    math::ExactSums sums(k * stride);
    found.pixels.assign(k, 0);
    const auto assign = [&](bool first, bool with_inertia) {
        const Moves moves = m->assign(centres, first, with_inertia);
        sums.add(moves.sums);
        for (size_t c = 0; c < k; ++c)
            found.pixels[c] += moves.pixels[c];
        found.inertia = moves.inertia.value(0);
        return moves.moved;
    };
    // If each assignment reads the scene, the inertia is computed each time: this takes less time than
    // another pass at the end.
    const bool each_time = !in_memory();
    while (!found.converged && found.iterations < m->options.iterations) {
        const int64_t moved = assign(found.iterations == 0, each_time);
        found.converged = moved == 0;
        ++found.iterations;
        if (found.converged) break;
        const Centres before = centres;
        found.relocated += m->move_centres(centres, sums, found.pixels);
        if (!m->bounds.gap.empty()) m->bounds.move(before, centres);
    }
    if (!found.converged || !(each_time || m->device)) assign(false, true);
    if (m->device) {
        math::ExactSums inertia(1);
        const bool angle = m->options.distance == Distance::angle;
        m->for_each_on_device(angle, [&](int64_t pixel, double distance, double length) {
            if (!angle) inertia.add(0, &distance, 1);
            if (angle) sums.add(m->scene.labels[static_cast<size_t>(pixel)] * stride - 1, &length, 1);
        });
        found.inertia = angle ? m->inertia_on_device(centres) : inertia.value(0);
    }
    if (m->options.distance == Distance::angle) {
        const auto length = [&](size_t c) { return sums.value(c * stride + stride - 1); };
        double all = 0;
        for (size_t c = 0; c < k; ++c)
            all += length(c);
        for (size_t c = 0; c < k; ++c)
            found.length.push_back(found.pixels[c] > 0
                                       ? length(c) / static_cast<double>(found.pixels[c])
                                       : all / static_cast<double>(std::max<int64_t>(m->valid, 1)));
    }
    found.centres = std::move(centres);
    return found;
}

std::unique_ptr<stream::Operation> Clustering::labels() const {
    return std::make_unique<LabelOperation>(m->scene.labels, m->scene.source.shape().samples);
}

const std::vector<stream::PassReport>& Clustering::passes() const { return m->scene.passes; }

std::unique_ptr<stream::Operation> make_assignment(const Centres& centres, Distance distance) {
    return std::make_unique<AssignOperation>(centres, distance);
}

std::vector<std::pair<std::string, std::unique_ptr<stream::Operation>>>
plan_operations(const stream::CubeShape& scene, const Options& options, int count) {
    std::vector<std::pair<std::string, std::unique_ptr<stream::Operation>>> all;
    all.emplace_back("start", std::make_unique<SampleScan>(scene, options, nullptr, nullptr, nullptr));
    all.emplace_back("iteration", plan_walk(scene, Moves::bytes(static_cast<size_t>(count),
                                                                stride_of(scene.bands, options.distance)) +
                                                       bytes_beside(scene.bands, count)));
    return all;
}

namespace {

class CpuBackend final : public Backend {
  public:
    std::unique_ptr<DeviceScene> make_scene(const stream::CubeShape&, const Options&, int,
                                            uint64_t) override {
        return nullptr;
    }
};

} // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

const char* simd_target() { return math::simd_target(); }

} // namespace hsi::cluster
