// SPDX-License-Identifier: MIT
#include "endmembers/search.h"

#include "core/byte_pack.h"
#include "endmembers/scores_simd.h"
#include "parallel/group.h"
#include "parallel/threads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace hsi::endmembers {
namespace {

static_assert(block_pixels == pca::BlockTransform::pixels);

/// Number of kept pixels in one work unit of a thread.
constexpr int64_t unit_pixels = 128 * block_pixels;

/// Computes y of a few pixels of a tile, in rows of block_pixels.
class FrameBlock {
  public:
    explicit FrameBlock(const Frame& frame) : m_frame(frame), m_transform(frame.transform) {}
    const double* apply(const CubeView<float>& in, int64_t line, int64_t sample, int64_t count) {
        double* const y = m_transform.apply(in, line, sample, count);
        if (m_frame.u.empty()) return y;
        const auto rows = static_cast<int64_t>(m_frame.u.size());
        for (int64_t i = 0; i < count; ++i) {
            double divisor = 0;
            for (int64_t r = 0; r < rows; ++r)
                divisor += m_frame.u[static_cast<size_t>(r)] * y[r * block_pixels + i];
            if (!(divisor > 0)) divisor = std::numeric_limits<double>::quiet_NaN();
            for (int64_t r = 0; r < rows; ++r)
                y[r * block_pixels + i] /= divisor;
        }
        return y;
    }

  private:
    const Frame& m_frame;
    pca::BlockTransform m_transform;
};

/// The quantity to maximise: the value of each form, or the distance from all forms.
struct Question {
    const Forms& forms;
    bool distance = false;
    double constant = 0;
    size_t leaders() const { return distance ? 1 : static_cast<size_t>(forms.count()); }
};

/// Finds leaders in blocks of pixels. Each thread has its own Looker.
class Looker {
  public:
    Looker(const Question& question, int rows)
        : leaders(question.leaders()), m_question(question), m_rows(rows),
          m_values(static_cast<size_t>(block_pixels) * static_cast<size_t>(question.forms.count() + 1)) {}

    /// The rows of `y` are `stride` apart and readable up to a multiple of 16 pixels. `first` is the index of
    /// pixel 0.
    void take(const double* y, ptrdiff_t stride, int64_t count, int64_t first) {
        const auto& simd = simd_kernels();
        const Forms& forms = m_question.forms;
        const int64_t whole = (count + 15) / 16 * 16;
        double* const values = m_values.data();
        simd.affine(y, stride, m_rows, forms.matrix.data(), forms.offset.data(), forms.count(), whole,
                    values);
        if (m_question.distance) {
            double* const left = values + forms.count() * block_pixels;
            simd.residual(y, stride, m_rows, m_question.constant, values, forms.count(), whole, left);
            offer(leaders.front(), left, count, first, false);
            return;
        }
        for (int k = 0; k < forms.count(); ++k)
            offer(leaders[static_cast<size_t>(k)], values + k * block_pixels, count, first, true);
    }

    std::vector<Leader> leaders;

  private:
    static void offer(Leader& leader, const double* values, int64_t count, int64_t first, bool absolute) {
        if (!simd_kernels().reaches(values, count, leader.threshold())) return;
        for (int64_t i = 0; i < count; ++i) {
            const double v = absolute ? std::fabs(values[i]) : values[i];
            if (v >= leader.threshold()) leader.offer(v, first + i); // The comparison is false for NaN.
        }
    }

    const Question& m_question;
    const int m_rows;
    std::vector<double> m_values;
};

/// A pass over the scene that computes y and passes blocks of y to takers.
class FrameOperation : public stream::Operation {
  public:
    FrameOperation(const Frame& frame, int64_t samples) : m_frame(frame), m_samples(samples) {}
    uint64_t scratch_bytes(const stream::TileLimits&) const override {
        return pca::BlockTransform::bytes(m_frame.transform);
    }
    uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
    std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
        return std::make_unique<FrameWorker>(*this);
    }

  protected:
    /// Receives the blocks of one thread. take() gets y of `count` pixels that start at index `first`; the
    /// rows of y are block_pixels apart.
    class Taker {
      public:
        virtual ~Taker() = default;
        virtual void take(const double* y, int64_t count, int64_t first) = 0;
    };
    virtual std::unique_ptr<Taker> make_taker() = 0;

    class FrameWorker final : public stream::Worker {
      public:
        explicit FrameWorker(FrameOperation& operation)
            : taker(operation.make_taker()), m_block(operation.m_frame), m_samples(operation.m_samples) {}
        void process(const Tile& tile, const CubeView<float>& in,
                     const std::vector<CubeView<float>>&) override {
            for (int64_t line = 0; line < tile.core.h; ++line)
                for (int64_t sample = 0; sample < tile.core.w; sample += block_pixels) {
                    const int64_t count = std::min(block_pixels, tile.core.w - sample);
                    taker->take(m_block.apply(in, line, sample, count), count,
                                (tile.core.y + line) * m_samples + tile.core.x + sample);
                }
        }
        std::unique_ptr<Taker> taker;

      private:
        FrameBlock m_block;
        const int64_t m_samples;
    };

    const Frame& m_frame;

  private:
    const int64_t m_samples;
};

} // namespace

/// y of `count` pixels that start at index `first`. Row r of pixel first + i is at values[r * count + i].
struct Kept {
    int64_t first = 0, count = 0;
    std::unique_ptr<double[]> values;
    bool holds(int64_t index) const { return index >= first && index < first + count; }
};

namespace {

class KeepOperation final : public FrameOperation {
  public:
    KeepOperation(const Frame& frame, const stream::CubeShape& shape, const Kept& kept)
        : FrameOperation(frame, shape.samples), m_kept(kept) {}

  private:
    class Keeper final : public Taker {
      public:
        explicit Keeper(const KeepOperation& operation)
            : m_rows(operation.m_frame.transform.outputs), m_kept(operation.m_kept) {}
        void take(const double* y, int64_t count, int64_t first) override {
            for (int64_t r = 0; r < m_rows; ++r)
                std::copy_n(y + r * block_pixels, count,
                            m_kept.values.get() + r * m_kept.count + (first - m_kept.first));
        }

      private:
        const int64_t m_rows;
        const Kept& m_kept;
    };
    std::unique_ptr<Taker> make_taker() override { return std::make_unique<Keeper>(*this); }

    const Kept& m_kept;
};

/// Exchanges leaders between ranks, so that all ranks know the leaders over all pixels.
void share(parallel::Group& ranks, std::vector<Leader>& leaders) {
    if (!ranks.several()) return;
    BytePacker mine;
    for (const Leader& leader : leaders) {
        mine.put(static_cast<uint64_t>(leader.rising().size()));
        for (const auto& [index, value] : leader.rising())
            mine.put(index).put(value);
    }
    for (const std::string& bytes : ranks.all("leaders", mine.take())) {
        ByteUnpacker in(bytes);
        for (Leader& leader : leaders)
            for (auto left = in.one<uint64_t>(); left > 0; --left) {
                const auto index = in.one<int64_t>();
                leader.offer(in.one<double>(), index);
            }
    }
}

/// Finds leaders in the same pass that computes y.
class LookOperation final : public FrameOperation {
  public:
    LookOperation(const Frame& frame, int64_t samples, const Question& question)
        : FrameOperation(frame, samples), leaders(question.leaders()), m_question(question) {}
    uint64_t scratch_bytes(const stream::TileLimits& limits) const override {
        return FrameOperation::scratch_bytes(limits) +
               static_cast<uint64_t>(block_pixels) * 8 * static_cast<uint64_t>(m_question.forms.count() + 1);
    }
    void stop(stream::Worker& worker) override {
        const auto& taker = static_cast<const LookTaker&>(*static_cast<FrameWorker&>(worker).taker);
        for (size_t k = 0; k < leaders.size(); ++k)
            leaders[k].merge(taker.looker.leaders[k]);
    }
    bool divides() const override { return true; }
    void exchange(parallel::Group& ranks) override { share(ranks, leaders); }
    std::vector<Leader> leaders;

  private:
    class LookTaker final : public Taker {
      public:
        LookTaker(const Question& question, int rows) : looker(question, rows) {}
        void take(const double* y, int64_t count, int64_t first) override {
            looker.take(y, block_pixels, count, first);
        }
        Looker looker;
    };
    std::unique_ptr<Taker> make_taker() override {
        return std::make_unique<LookTaker>(m_question, m_frame.transform.outputs);
    }

    const Question& m_question;
};

} // namespace

void Forms::add(const std::vector<double>& form, bool leading, double constant) {
    offset.push_back((leading ? form.front() : form.back()) * constant);
    matrix.insert(matrix.end(), form.begin() + (leading ? 1 : 0), form.end() - (leading ? 0 : 1));
}

void Leader::offer(double value, int64_t index) {
    if (!(value >= m_threshold)) return;
    const auto at = std::lower_bound(m_rising.begin(), m_rising.end(), std::pair(index, value));
    if (at != m_rising.begin() && std::prev(at)->second >= value) return;
    auto end = at;
    while (end != m_rising.end() && end->second <= value)
        ++end;
    m_rising.insert(m_rising.erase(at, end), {index, value});
    if (value <= m_best && m_rising.size() > 1) return;
    m_best = std::max(m_best, value);
    m_threshold = m_best - 1e-10 * m_best;
    m_rising.erase(m_rising.begin(), std::find_if(m_rising.begin(), m_rising.end(), [&](const auto& one) {
                       return one.second >= m_threshold;
                   }));
}

void Leader::merge(const Leader& other) {
    for (const auto& [index, value] : other.m_rising)
        offer(value, index);
}

struct Search::State {
    const stream::CubeSource& source;
    Frame frame;
    MakePass make_pass;
    Extraction& record;
    Kept kept; ///< with several ranks, each rank keeps a part
    int threads = 1;
    const CancelFlag* cancel = nullptr;
    parallel::Group& ranks = parallel::group();
    int64_t samples = source.shape().samples;
    int rows() const { return frame.transform.outputs; }

    std::vector<Leader> look(const Question& question) {
        ++record.looks;
        if (kept.values) return look_at_kept(question);
        LookOperation operation(frame, samples, question);
        record.passes.push_back(stream::run_pass(source, operation, {}, make_pass("search")));
        return operation.leaders;
    }

    std::vector<Leader> look_at_kept(const Question& question) const {
        std::vector<Looker> lookers(static_cast<size_t>(threads), Looker(question, rows()));
        parallel::for_each(
            (kept.count + unit_pixels - 1) / unit_pixels, threads, cancel, [&](int64_t unit, int member) {
                const int64_t end = std::min(kept.count, (unit + 1) * unit_pixels);
                for (int64_t at = unit * unit_pixels; at < end; at += block_pixels)
                    lookers[static_cast<size_t>(member)].take(kept.values.get() + at, kept.count,
                                                              std::min(block_pixels, end - at),
                                                              kept.first + at);
            });
        auto leaders = std::move(lookers.front().leaders);
        for (size_t member = 1; member < lookers.size(); ++member)
            for (size_t k = 0; k < leaders.size(); ++k)
                leaders[k].merge(lookers[member].leaders[k]);
        share(ranks, leaders);
        return leaders;
    }

    /// Computes and keeps y of all pixels if this rank's part fits into half of the memory.
    void keep() {
        auto options = make_pass("components");
        threads = std::max(1, options.lanes);
        cancel = options.cancel;
        const auto shape = source.shape();
        // Forms process sixteen pixels at a time and therefore read past the end of the last row.
        const auto bytes_of = [&](int64_t lines) {
            return (static_cast<uint64_t>(lines * samples) * static_cast<uint64_t>(rows()) + 16) *
                   sizeof(double);
        };
        const uint64_t memory = options.memory;
        const uint64_t least = bytes_of((shape.lines + ranks.size() - 1) / ranks.size());
        if (least > memory / 2) return;
        options.memory -= least;
        KeepOperation operation(frame, shape, kept);
        const TilePlan plan = stream::plan_pass(source, operation, options);
        // A rank keeps whole rows of tiles, so that its lines are contiguous. Pixels are kept only if all
        // ranks have enough memory.
        const int64_t height = plan.tile_lines(), tile_rows = (shape.lines + height - 1) / height;
        const auto line_of = [&](int rank) {
            return std::min(shape.lines, rank * tile_rows / ranks.size() * height);
        };
        uint64_t most = 0;
        for (int rank = 0; rank < ranks.size(); ++rank)
            most = std::max(most, bytes_of(line_of(rank + 1) - line_of(rank)));
        if (most > memory / 2 || most + stream::plan_bytes(source, operation, plan) > memory) return;
        kept.first = line_of(ranks.rank()) * samples;
        kept.count = line_of(ranks.rank() + 1) * samples - kept.first;
        const size_t numbers = static_cast<size_t>(kept.count) * static_cast<size_t>(rows()) + 16;
        kept.values.reset(new double[numbers]);
        std::fill_n(kept.values.get() + numbers - 16, 16, 0.0);
        std::vector<int64_t> mine;
        for (int64_t t = 0; t < plan.size(); ++t)
            if (kept.holds(plan.tile(t).core.y * samples)) mine.push_back(t);
        if (ranks.several()) options.only = &mine;
        auto pass = stream::run_pass(source, operation, {}, plan, options);
        stream::add_up(ranks, pass, 0);
        record.passes.push_back(std::move(pass));
        record.in_memory = true;
    }

    /// Returns y of a pixel from the rank that keeps it.
    std::vector<double> kept_at(int64_t index) const {
        std::vector<double> y;
        for (int r = 0; r < rows() && kept.holds(index); ++r)
            y.push_back(kept.values[static_cast<size_t>(r * kept.count + index - kept.first)]);
        if (!ranks.several()) return y;
        return ByteUnpacker(ranks.reduce("pixel", BytePacker().put(y).take(),
                                         [](const std::string& a, const std::string& b) {
                                             return a.size() > b.size() ? a : b;
                                         }))
            .one<std::vector<double>>();
    }

    Peak peak_of(const Leader& leader) const {
        if (!leader.found()) return {};
        return {true, leader.index() / samples, leader.index() % samples, leader.value()};
    }
};

Search::Search(const stream::CubeSource& source, Frame frame, const MakePass& make_pass, Extraction& record)
    : m(new State{source, std::move(frame), make_pass, record, {}}) {
    m->keep();
}

Search::~Search() = default;

int Search::rows() const { return m->rows(); }

std::vector<Peak> Search::greatest(const Forms& forms) {
    std::vector<Peak> peaks;
    for (const auto& leader : m->look({forms}))
        peaks.push_back(m->peak_of(leader));
    return peaks;
}

Peak Search::farthest(double constant, const Forms& forms) {
    return m->peak_of(m->look({forms, true, constant}).front());
}

std::vector<double> Search::y_at(const Peak& place) {
    if (m->kept.values) return m->kept_at(place.line * m->samples + place.sample);
    std::vector<double> y;
    const int bands = m->source.shape().bands;
    std::vector<float> x(static_cast<size_t>(bands));
    const auto view = CubeView<float>::packed(x.data(), bands, 1, 1);
    m->source.open_reader()->read({place.sample, place.line, 1, 1}, view);
    FrameBlock block(m->frame);
    const double* const values = block.apply(view, 0, 0, 1);
    for (int r = 0; r < m->rows(); ++r)
        y.push_back(values[r * block_pixels]);
    return y;
}

std::vector<double> OrthonormalBasis::residual(std::vector<double> v) const {
    // A single subtraction leaves rounding errors, so the projection is subtracted twice.
    for (int twice = 0; twice < 2; ++twice)
        for (const auto& q : m_vectors) {
            double product = 0;
            for (size_t i = 0; i < v.size(); ++i)
                product += q[i] * v[i];
            for (size_t i = 0; i < v.size(); ++i)
                v[i] -= product * q[i];
        }
    return v;
}

void OrthonormalBasis::add(const std::vector<double>& v) {
    auto q = residual(v);
    const double length = length_of(q);
    for (double& x : q)
        x /= length;
    m_vectors.push_back(std::move(q));
}

double length_of(const std::vector<double>& v) {
    double sum = 0;
    for (const double x : v)
        sum += x * x;
    return std::sqrt(sum);
}

std::unique_ptr<stream::Operation> plan_operation(const stream::CubeShape& shape, const Options& options) {
    /// Owns the frame to which the operation refers.
    class Planned final : public stream::Operation {
      public:
        explicit Planned(int bands, int rows) {
            m_frame.transform.inputs = bands;
            m_frame.transform.outputs = rows;
        }
        uint64_t scratch_bytes(const stream::TileLimits&) const override {
            return pca::BlockTransform::bytes(m_frame.transform);
        }
        uint64_t preferred_bytes() const override { return uint64_t{8} << 20; }
        std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override { return nullptr; }

      private:
        Frame m_frame;
    };
    return std::make_unique<Planned>(shape.bands,
                                     options.method == Method::nfindr ? options.count - 1 : options.count);
}

} // namespace hsi::endmembers
