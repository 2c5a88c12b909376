// SPDX-License-Identifier: MIT
// Diffusion profiles on one GPU with the component planes in device memory: our kernels compared with the
// published kernels (in double precision, as in paper 001, and in single precision). Prints medians of CUDA
// events for the sizes of the paper's three scenes and for the stages of its Table III. Each variant is
// compared with our results in double precision.
//
//   eadp_cuda_bench [-repeat N] [-published 0|1] [-size SAMPLES LINES COMPONENTS]
#include "cuda/device_buffer.h"
#include "cuda/stream.h"
#include "eadp/eadp_cuda_kernels.cuh"
#include "published/eadp.cuh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace hsi;
using namespace hsi::eadp;
using cuda::DeviceBuffer;

struct Size {
    const char* name;
    int samples, lines, components;
    size_t pixels() const { return static_cast<size_t>(samples) * static_cast<size_t>(lines); }
};

/// Makes planes with patches that have sharp edges, gradients and noise.
std::vector<float> make_planes(const Size& size) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> planes(size.pixels() * static_cast<size_t>(size.components));
    for (int c = 0; c < size.components; ++c) {
        std::vector<float> patch(64 * 64);
        for (auto& v : patch)
            v = uniform(random);
        for (int y = 0; y < size.lines; ++y)
            for (int x = 0; x < size.samples; ++x)
                planes[static_cast<size_t>(c) * size.pixels() + static_cast<size_t>(y) * size.samples + x] =
                    patch[static_cast<size_t>((y / 11) % 64 * 64 + (x / 13 + y / 40) % 64)] +
                    0.3f * std::sin(0.02f * static_cast<float>(x + c * y)) + 0.05f * normal(random);
    }
    return planes;
}

/// Our computation, from planes to copies on the device.
template <class T>
class Ours {
  public:
    Ours(const Size& size, const Options& options, cudaStream_t stream)
        : m_options(options),
          m_stages(make_stages(options)), m_planes{nullptr, size.components, size.samples, size.lines},
          m_stream(stream), m_weights(gaussian_weights(options.sigma).size()), m_valid(size.pixels()),
          m_squared(count()), m_steepest(size.components), m_k(size.components), m_level(size.components),
          m_sums(size.components), m_counts(static_cast<size_t>(size.components) * histogram_bins),
          m_start(padded_count()), m_east(padded_count()), m_south(padded_count()),
          m_recurrence(0, size.samples, size.lines, size.components, m_stages, stream) {
        const auto w = gaussian_weights(options.sigma);
        HSI_CUDA_CHECK(cudaMemcpy(m_weights.data(), w.data(), m_weights.bytes(), cudaMemcpyHostToDevice));
    }
    const char* kind() const { return m_recurrence.persistent() ? "persistent" : "a launch a sweep"; }

    void run(const float* x, float* out, const std::function<void(const char*)>& tick) {
        m_planes.x = x;
        const int n = m_planes.components;
        gpu::launch_mask(m_planes, false, m_valid.data(), m_stream);
        gpu::clear_ranges(m_sums.data(), n, m_stream);
        m_counts.clear(m_stream);
        tick("setup");
        gpu::GradientWork work;
        work.weights = m_weights.data();
        work.radius = gaussian_radius(m_options.sigma);
        const gpu::Core core{0, 0, m_planes.samples, m_planes.lines};
        gpu::launch_gradient(m_planes, m_valid.data(), work, m_squared.data(), core, m_sums.data(), m_stream);
        tick("Gaussian"); // includes Scharr and the largest gradient
        find_contrasts(core);
        tick("contrast");
        gpu::launch_weights<T>(m_planes, m_valid.data(), m_squared.data(), m_k.data(), m_level.data(),
                               m_options.diffusivity, m_start.data(), m_east.data(), m_south.data(),
                               m_stream);
        tick("diffusivity");
        gpu::StageWork<T> stage;
        stage.components = n;
        stage.samples = m_planes.samples;
        stage.lines = m_planes.lines;
        stage.pitch = gpu::padded(stage.samples);
        stage.start = m_start.data();
        stage.east = m_east.data();
        stage.south = m_south.data();
        stage.valid = m_valid.data();
        stage.level = m_level.data();
        stage.core = stage.region = core;
        stage.out = out;
        stage.out_bands = m_options.copies();
        m_recurrence.run(0, stage, m_stream);
        tick("FED");
        tick("cleanup");
    }

  private:
    /// Computes the contrasts on the CPU from the ranges and the histograms, as the tool does.
    void find_contrasts(const gpu::Core& core) {
        const auto n = static_cast<size_t>(m_planes.components);
        std::vector<gpu::RangeSums> sums(n);
        m_sums.download(sums.data(), n, m_stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
        std::vector<Range> ranges;
        std::vector<double> steepest, k;
        std::vector<float> level;
        for (const auto& s : sums) {
            ranges.push_back(gpu::range_of(s));
            steepest.push_back(ranges.back().steepest);
            level.push_back(ranges.back().level());
        }
        m_steepest.upload(steepest.data(), n, m_stream);
        m_level.upload(level.data(), n, m_stream);
        gpu::launch_histogram(m_planes, m_valid.data(), m_squared.data(), core, m_steepest.data(),
                              m_counts.data(), m_stream);
        std::vector<unsigned long long> counts(m_counts.size());
        m_counts.download(counts.data(), counts.size(), m_stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream));
        for (size_t c = 0; c < n; ++c) {
            Histogram h;
            std::copy_n(counts.begin() + static_cast<ptrdiff_t>(c * histogram_bins), h.size(), h.begin());
            k.push_back(contrast_of(ranges[c], h, m_options.percentile));
        }
        m_k.upload(k.data(), n, m_stream);
        HSI_CUDA_CHECK(cudaStreamSynchronize(m_stream)); // `k` must exist until the upload is complete
    }
    size_t padded_count() const {
        return static_cast<size_t>(gpu::padded(m_planes.samples)) * static_cast<size_t>(m_planes.lines) *
               static_cast<size_t>(m_planes.components);
    }
    size_t count() const { return m_planes.pixels() * static_cast<size_t>(m_planes.components); }

    const Options m_options;
    const std::vector<Stage> m_stages;
    gpu::Planes m_planes;
    cudaStream_t m_stream;
    DeviceBuffer<double> m_weights;
    DeviceBuffer<uint8_t> m_valid;
    DeviceBuffer<double> m_squared, m_steepest, m_k;
    DeviceBuffer<float> m_level;
    DeviceBuffer<gpu::RangeSums> m_sums;
    DeviceBuffer<unsigned long long> m_counts;
    DeviceBuffer<T> m_start, m_east, m_south;
    gpu::Recurrence<T> m_recurrence;
};

using Runner = std::function<void(const std::function<void(const char*)>&)>;

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

const char* const stages[] = {"setup", "Gaussian", "Scharr", "contrast", "diffusivity", "FED", "cleanup"};

/// Prints the milliseconds of a whole run without synchronisation between stages, and of each stage
/// separately.
void report(const char* name, int repeat, cudaStream_t stream, const Runner& run) {
    const auto nothing = [](const char*) {};
    run(nothing);
    HSI_CUDA_CHECK(cudaStreamSynchronize(stream));
    cuda::Event begin(cuda::Event::Timing::on), end(cuda::Event::Timing::on);
    std::vector<double> whole;
    std::map<std::string, std::vector<double>> parts;
    for (int i = 0; i < repeat; ++i) {
        begin.record(stream);
        run(nothing);
        end.record(stream);
        end.wait();
        whole.push_back(static_cast<double>(end.milliseconds_since(begin)));
    }
    for (int i = 0; i < std::max(3, repeat / 3); ++i) {
        std::map<std::string, double> sums;
        begin.record(stream);
        run([&](const char* stage) {
            end.record(stream);
            end.wait();
            sums[stage] += static_cast<double>(end.milliseconds_since(begin));
            begin.record(stream);
        });
        for (const char* s : stages)
            parts[s].push_back(sums[s]);
    }
    std::printf("  %-34s %9.3f ms   ", name, median(whole));
    for (const char* s : stages)
        std::printf(" %s %.3f", s, median(parts[s]));
    std::printf("\n");
    std::fflush(stdout);
}

void compare(const char* name, const DeviceBuffer<float>& got, const std::vector<float>& want,
             const std::vector<float>& x, const Size& size) {
    std::vector<float> host(got.size());
    HSI_CUDA_CHECK(cudaMemcpy(host.data(), got.data(), got.bytes(), cudaMemcpyDeviceToHost));
    double worst = 0;
    const size_t n = size.pixels(), copies = got.size() / n / static_cast<size_t>(size.components);
    for (size_t c = 0; c < static_cast<size_t>(size.components); ++c) {
        const auto [low, high] = std::minmax_element(x.begin() + static_cast<ptrdiff_t>(c * n),
                                                     x.begin() + static_cast<ptrdiff_t>((c + 1) * n));
        for (size_t i = c * copies * n; i < (c + 1) * copies * n; ++i)
            worst =
                std::max(worst, std::isnan(host[i])
                                    ? 1e9
                                    : std::fabs(static_cast<double>(host[i]) - static_cast<double>(want[i])) /
                                          static_cast<double>(*high - *low));
    }
    std::printf("  %-34s differs by %.1e of the range from double precision\n", name, worst);
}

void measure(const Size& size, int repeat, bool with_published) {
    std::printf("%s %dx%d, %d components, 8 copies\n", size.name, size.samples, size.lines, size.components);
    cuda::Stream stream;
    Options options;
    for (int c = 1; c <= 8; ++c)
        options.times.push_back(65.0 * c);
    const auto x = make_planes(size);
    DeviceBuffer<float> d_x(x.size()), out(x.size() * 8);
    HSI_CUDA_CHECK(cudaMemcpy(d_x.data(), x.data(), d_x.bytes(), cudaMemcpyHostToDevice));
    std::vector<float> want(out.size());
    const auto ours = [&](const char* name, auto zero, const Options& o, bool first) {
        using T = decltype(zero);
        Ours<T> runner(size, o, stream.get());
        report((std::string(name) + ", " + runner.kind()).c_str(), repeat, stream.get(),
               [&](const auto& tick) { runner.run(d_x.data(), out.data(), tick); });
        if (first) HSI_CUDA_CHECK(cudaMemcpy(want.data(), out.data(), out.bytes(), cudaMemcpyDeviceToHost));
        if (o.scheme == Scheme::fed) compare(name, out, want, x, size);
    };
    ours("FED, double", 0.0, options, true);
    ours("FED, single", 0.0f, options, false);
    auto exact = options;
    exact.scheme = Scheme::exact;
    ours("exact 1e-4, single", 0.0f, exact, false);
    if (!with_published) return;
    report("published kernels, double", std::max(3, repeat / 7), stream.get(), [&](const auto& tick) {
        published::profile<double>(d_x.data(), size.components, size.samples, size.lines, options, out.data(),
                                   stream.get(), tick);
    });
    compare("published kernels, double", out, want, x, size);
    report("published kernels, single", std::max(3, repeat / 7), stream.get(), [&](const auto& tick) {
        published::profile<float>(d_x.data(), size.components, size.samples, size.lines, options, out.data(),
                                  stream.get(), tick);
    });
    compare("published kernels, single", out, want, x, size);
}

} // namespace

int main(int argc, char** argv) {
    int repeat = 21;
    bool with_published = true;
    std::vector<Size> sizes{
        {"Houston", 1905, 349, 7}, {"Indian Pines", 145, 145, 7}, {"Pavia University", 340, 610, 7}};
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "-repeat") && i + 1 < argc)
            repeat = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "-published") && i + 1 < argc)
            with_published = std::atoi(argv[++i]) != 0;
        else if (!std::strcmp(argv[i], "-size") && i + 3 < argc) {
            sizes = {{"Scene", std::atoi(argv[i + 1]), std::atoi(argv[i + 2]), std::atoi(argv[i + 3])}};
            i += 3;
        } else {
            std::fprintf(stderr, "usage: %s [-repeat N] [-published 0|1] [-size SAMPLES LINES COMPONENTS]\n",
                         argv[0]);
            return 2;
        }
    }
    try {
        cudaDeviceProp device{};
        HSI_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
        std::printf("%s\n", device.name);
        for (const auto& size : sizes)
            measure(size, repeat, with_published);
    } catch (const hsi::Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
