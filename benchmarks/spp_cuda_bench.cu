// SPDX-License-Identifier: MIT
// SPP on one GPU with the cube in device memory: our kernels compared with the kernels of paper 004, with the
// sizes of its two scenes, by stage and with transfers. The times exclude the centroid, which the tool
// computes on the CPU while the GPU starts. Times are medians of CUDA events. The result y' of each variant
// is checked against ours.
//
//   spp_cuda_bench [-size SAMPLES LINES BANDS] [-ws 3,5,...] [-repeat N] [-published 0|1] [-serial 0|1]
#include "cuda/device_buffer.h"
#include "cuda/pinned.h"
#include "cuda/stream.h"
#include "published/spp.cuh"
#include "published/spp.h"
#include "spp/spp_cuda_kernels.cuh"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <sstream>
#include <string>

namespace {

using namespace hsi;
using cuda::DeviceBuffer;

struct Size {
    const char* name;
    int samples, lines, bands;
    size_t pixels() const { return static_cast<size_t>(samples) * static_cast<size_t>(lines); }
    size_t values() const { return pixels() * static_cast<size_t>(bands); }
};

struct Settings {
    std::vector<Size> sizes{{"Cuprite", 350, 350, 188}, {"WTC", 614, 512, 224}};
    std::vector<int> windows{3, 5, 7, 9, 11, 13, 15};
    int repeat = 21;
    bool published = true, serial = false;
};

/// Makes mixtures of twelve smooth spectra. The mixtures change over about eight pixels; the noise is half a
/// per cent.
void fill(const Size& size, float* cube) {
    constexpr int materials = 12;
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    std::normal_distribution<float> normal;
    std::vector<float> spectra(static_cast<size_t>(materials * size.bands));
    for (int m = 0; m < materials; ++m) {
        float v = 0.2f + 0.3f * uniform(random);
        for (int b = 0; b < size.bands; ++b) {
            v = std::min(1.0f, std::max(0.05f, v + 0.05f * (uniform(random) - 0.5f)));
            spectra[static_cast<size_t>(m * size.bands + b)] = v;
        }
    }
    const int gx = size.samples / 8 + 2, gy = size.lines / 8 + 2;
    std::vector<float> grid(static_cast<size_t>(materials * gx * gy));
    for (float& g : grid)
        g = uniform(random);
    std::vector<float> noise(1 << 16);
    for (float& n : noise)
        n = 0.005f * normal(random);
    for (int l = 0; l < size.lines; ++l)
        for (int s = 0; s < size.samples; ++s) {
            float share[materials], total = 0;
            const float fx = static_cast<float>(s % 8) / 8, fy = static_cast<float>(l % 8) / 8;
            for (int m = 0; m < materials; ++m) {
                const float* g = grid.data() + (static_cast<size_t>(m) * gy + l / 8) * gx + s / 8;
                const float v =
                    (1 - fy) * ((1 - fx) * g[0] + fx * g[1]) + fy * ((1 - fx) * g[gx] + fx * g[gx + 1]);
                total += share[m] = v * v * v * v;
            }
            for (int b = 0; b < size.bands; ++b) {
                float v = 0;
                for (int m = 0; m < materials; ++m)
                    v += share[m] * spectra[static_cast<size_t>(m * size.bands + b)];
                cube[static_cast<size_t>(b) * size.pixels() + static_cast<size_t>(l) * size.samples + s] =
                    v / total + noise[random() & 0xffff];
            }
        }
}

class Clock {
  public:
    explicit Clock(int repeat) : m_repeat(repeat) {}
    cudaStream_t stream() const { return m_stream.get(); }
    void synchronize() { m_stream.synchronize(); }
    /// Returns the median time of `work` on the stream in milliseconds, after one run as a warm-up.
    double median(const std::function<void()>& work, int repeat = 0) {
        work();
        m_stream.synchronize();
        std::vector<float> times;
        for (int i = 0; i < (repeat ? repeat : m_repeat); ++i) {
            m_begin.record(m_stream.get());
            work();
            m_end.record(m_stream.get());
            m_end.wait();
            times.push_back(m_end.milliseconds_since(m_begin));
        }
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
    }

  private:
    int m_repeat;
    cuda::Stream m_stream;
    cuda::Event m_begin{cuda::Event::Timing::on}, m_end{cuda::Event::Timing::on};
};

/// The difference of `b` from `a`: mean NRMSE over the pixels, and the largest MaxSDE (paper 004, eq. 6 and
/// 8).
struct Difference {
    double nrmse = 0, maxsde = 0;
    Difference(const Size& size, const float* a, const float* b) {
        const size_t n = size.pixels();
        for (size_t p = 0; p < n; ++p) {
            double mean = 0, magnitude = 0, square = 0, spread = 0, largest = 0;
            for (int k = 0; k < size.bands; ++k) {
                mean += a[static_cast<size_t>(k) * n + p];
                magnitude += std::fabs(a[static_cast<size_t>(k) * n + p]);
            }
            mean /= size.bands;
            for (int k = 0; k < size.bands; ++k) {
                const double want = a[static_cast<size_t>(k) * n + p],
                             off = b[static_cast<size_t>(k) * n + p] - want;
                square += off * off;
                spread += (want - mean) * (want - mean);
                largest = std::max(largest, std::fabs(off));
            }
            nrmse += std::sqrt(square / spread) / static_cast<double>(n);
            maxsde = std::max(maxsde, largest * size.bands / magnitude);
        }
    }
};

class Bench {
  public:
    Bench(const Size& size, const Settings& settings)
        : m_size(size), m_settings(settings), m_clock(settings.repeat),
          m_pinned(std::make_shared<cuda::PinnedAllocator>(0)), m_host(m_pinned, size.values()),
          m_result(m_pinned, size.values()), m_cube(size.values()), m_out(size.values()),
          m_alpha(size.pixels()), m_scale(size.pixels()), m_centroid(static_cast<size_t>(size.bands)) {
        fill(size, m_host.data());
        m_cube.upload(m_host.data(), size.values(), m_clock.stream());
    }

    bool run() {
        std::printf("\n%s: %d x %d x %d, %.0f MB, median of %d\n", m_size.name, m_size.samples, m_size.lines,
                    m_size.bands, static_cast<double>(m_size.values()) * 4e-6, m_settings.repeat);
        const auto stream = m_clock.stream();
        m_upload = m_clock.median([&] { m_cube.upload(m_host.data(), m_size.values(), stream); });
        m_download = m_clock.median([&] { m_out.download(m_result.data(), m_size.values(), stream); });
        const double copy = m_clock.median([&] {
            HSI_CUDA_CHECK(cudaMemcpyAsync(m_out.data(), m_cube.data(), m_cube.bytes(),
                                           cudaMemcpyDeviceToDevice, stream));
        });
        std::printf("transfers: to the device %.2f ms, back %.2f ms; device copy %.3f ms (%.2f TB/s)\n",
                    m_upload, m_download, copy, 2 * static_cast<double>(m_cube.bytes()) / copy * 1e-9);
        mean_spectrum();
        std::printf("\n%-10s", "ms");
        for (const char* head : {"norms", "angles", "double", "displace", "all", "with copies"})
            std::printf("%12s", head);
        std::printf("  check against ours: mean NRMSE, max MaxSDE\n");
        bool good = true;
        for (int ws : m_settings.windows) {
            ours(ws);
            if (m_settings.published) {
                good = published_variant(ws, published::Variant::m1, "1M") && good;
                good = published_variant(ws, published::Variant::nm, "NM") && good;
                good = published_variant(ws, published::Variant::ns, "NS") && good;
            }
            if (m_settings.serial) good = serial(ws) && good;
        }
        return good;
    }

  private:
    void mean_spectrum() {
        std::vector<double> mean(static_cast<size_t>(m_size.bands));
        for (size_t i = 0; i < m_size.values(); ++i)
            mean[i / m_size.pixels()] +=
                static_cast<double>(m_host[i]) / static_cast<double>(m_size.pixels());
        const auto parts = spp::gpu::split_centroid(mean);
        m_centroid.upload(parts.data(), parts.size(), m_clock.stream());
        m_clock.synchronize();
    }

    void row(const char* name, int ws, std::vector<double> stages) {
        double all = 0;
        std::printf("%-4s ws %2d", name, ws);
        for (double s : stages) {
            all += s;
            if (s < 0)
                std::printf("%12s", "");
            else
                std::printf("%12.3f", s);
        }
        std::printf("%12.3f%12.3f", all, all + m_upload + m_download);
    }

    void ours(int ws) {
        const auto sizes =
            spp::gpu::alpha_sizes(ws, m_size.samples, m_size.lines, static_cast<int64_t>(m_size.pixels()));
        DeviceBuffer<double> inverse(sizes.inverse), numerator(sizes.sums), denominator(sizes.sums);
        DeviceBuffer<float> inverse_single(sizes.inverse), angles(sizes.angles);
        DeviceBuffer<int> list(sizes.list), count(1);
        DeviceBuffer<double> weights(sizes.weights);
        const auto stream = m_clock.stream();
        const auto beta = spp::gpu::half_window_weights(ws);
        weights.upload(beta.data(), beta.size(), stream);
        spp::gpu::AlphaWork work;
        work.cube = m_cube.data();
        work.bands = m_size.bands;
        work.shape.samples = work.shape.core_samples = m_size.samples;
        work.shape.lines = work.shape.core_lines = m_size.lines;
        work.window = ws;
        work.alpha = m_alpha.data();
        work.scale = m_scale.data();
        work.inverse = inverse.data();
        work.inverse_single = inverse_single.data();
        work.angles = angles.data();
        work.numerator = numerator.data();
        work.denominator = denominator.data();
        work.list = list.data();
        work.count = count.data();
        work.weights = weights.data();
        const auto displace = [&] {
            spp::gpu::launch_displacement(work.cube, work.bands, work.shape, work.scale, m_centroid.data(),
                                          m_out.data(), stream);
        };
        m_clock.synchronize();
        std::vector<double> stages;
        stages.push_back(m_clock.median([&] {
            spp::gpu::launch_norms(work.cube, work.bands, work.shape.pixels(), work.inverse,
                                   work.inverse_single, stream);
        }));
        stages.push_back(m_clock.median([&] { spp::gpu::launch_angles(work, stream); }));
        const double with_double = m_clock.median([&] {
            spp::gpu::launch_angles(work, stream);
            spp::gpu::launch_double_angles(work, stream);
        });
        stages.push_back(std::max(0.0, with_double - stages.back()));
        stages.push_back(m_clock.median(displace));
        const double chain = m_clock.median([&] {
            spp::gpu::launch_alpha(work, stream);
            displace();
        });
        int listed = 0;
        count.download(&listed, 1, stream);
        m_clock.synchronize();
        row("ours", ws, stages);
        std::printf("  in one go %.3f; %d pixels in double\n", chain, listed);
        m_out.download(m_result.data(), m_size.values(), stream);
        m_clock.synchronize();
    }

    bool check(const float* values) {
        const Difference d(m_size, m_result.data(), values);
        // The published kernels compute arccos of a cosine in single precision. The paper's Table I states
        // differences of 2.7e-5 (NRMSE) and 5e-3 (MaxSDE) for them.
        const bool good = d.nrmse < 2e-4 && d.maxsde < 1e-2;
        std::printf("  %.1e, %.1e%s\n", d.nrmse, d.maxsde, good ? "" : "  WRONG");
        return good;
    }

    bool published_variant(int ws, published::Variant variant, const char* name) {
        const int d = ws / 2, pixels = static_cast<int>(m_size.pixels());
        std::vector<float> beta(static_cast<size_t>(ws * ws)), total(m_size.pixels());
        for (int a = -d; a <= d; ++a)
            for (int b = -d; b <= d; ++b)
                beta[static_cast<size_t>((a + d) * ws + b + d)] =
                    a == 0 && b == 0 ? 0.0f : 1.0f / static_cast<float>(a * a + b * b);
        for (int l = 0; l < m_size.lines; ++l)
            for (int s = 0; s < m_size.samples; ++s)
                for (int a = std::max(-d, -l); a <= std::min(d, m_size.lines - 1 - l); ++a)
                    for (int b = std::max(-d, -s); b <= std::min(d, m_size.samples - 1 - s); ++b)
                        total[static_cast<size_t>(l * m_size.samples + s)] +=
                            beta[static_cast<size_t>((a + d) * ws + b + d)];
        const auto stream = m_clock.stream();
        DeviceBuffer<float> norm(m_size.pixels()), device_beta(beta.size()), device_total(total.size()),
            centroid(static_cast<size_t>(m_size.bands)), out(m_size.values());
        device_beta.upload(beta.data(), beta.size(), stream);
        device_total.upload(total.data(), total.size(), stream);
        const published::Scene scene{m_cube.data(), m_size.samples, m_size.lines, m_size.bands};
        const int repeat = std::min(5, m_settings.repeat), blocks = (pixels + 1023) / 1024;
        std::vector<double> stages;
        published::centroid_kernel<<<m_size.bands, 1024, 0, stream>>>(scene, centroid.data());
        HSI_CUDA_LAUNCHED("centroid_kernel");
        stages.push_back(m_clock.median(
            [&] {
                published::norm_kernel<<<blocks, 1024, 0, stream>>>(scene, norm.data());
                HSI_CUDA_LAUNCHED("norm_kernel");
            },
            repeat));
        stages.push_back(m_clock.median(
            [&] {
                published::launch_alpha(variant, scene, norm.data(), device_beta.data(), device_total.data(),
                                        ws, m_alpha.data(), stream);
            },
            repeat));
        stages.push_back(0.0);
        stages.push_back(m_clock.median(
            [&] {
                published::displacement_kernel<<<blocks, 1024, 0, stream>>>(scene, m_alpha.data(),
                                                                            centroid.data(), out.data());
                HSI_CUDA_LAUNCHED("displacement_kernel");
            },
            repeat));
        row(name, ws, stages);
        std::vector<float> got(m_size.values());
        out.download(got.data(), got.size(), stream);
        m_clock.synchronize();
        return check(got.data());
    }

    bool serial(int ws) {
        const size_t n = m_size.pixels();
        std::vector<float> pixels(m_size.values()), out(m_size.values()), planes(m_size.values());
        for (size_t p = 0; p < n; ++p)
            for (int b = 0; b < m_size.bands; ++b)
                pixels[p * static_cast<size_t>(m_size.bands) + static_cast<size_t>(b)] =
                    m_host[static_cast<size_t>(b) * n + p];
        const auto begin = std::chrono::steady_clock::now();
        published::serial(pixels.data(), m_size.samples, m_size.lines, m_size.bands, ws, out.data());
        const double ms =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
        for (size_t p = 0; p < n; ++p)
            for (int b = 0; b < m_size.bands; ++b)
                planes[static_cast<size_t>(b) * n + p] =
                    out[p * static_cast<size_t>(m_size.bands) + static_cast<size_t>(b)];
        std::printf("serial %3d%48s%12.3f%12.3f", ws, "", ms, ms);
        return check(planes.data());
    }

    Size m_size;
    const Settings& m_settings;
    Clock m_clock;
    std::shared_ptr<HostAllocator> m_pinned;
    HostBuffer<float> m_host, m_result;
    DeviceBuffer<float> m_cube, m_out, m_alpha, m_scale;
    DeviceBuffer<float2> m_centroid;
    double m_upload = 0, m_download = 0;
};

Settings parse(int argc, char** argv) {
    Settings s;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        const auto next = [&] {
            if (++i >= argc) throw UsageError(option + " needs a value");
            return std::string(argv[i]);
        };
        if (option == "-size") {
            const int samples = std::stoi(next()), lines = std::stoi(next()), bands = std::stoi(next());
            s.sizes = {{"scene", samples, lines, bands}};
        } else if (option == "-ws") {
            s.windows.clear();
            std::stringstream list(next());
            for (std::string item; std::getline(list, item, ',');)
                s.windows.push_back(std::stoi(item));
        } else if (option == "-repeat") {
            s.repeat = std::max(1, std::stoi(next()));
        } else if (option == "-published") {
            s.published = next() == "1";
        } else if (option == "-serial") {
            s.serial = next() == "1";
        } else {
            throw UsageError("unknown option " + option);
        }
    }
    for (int ws : s.windows)
        if (ws < 3 || ws > (s.published ? 31 : 63) || ws % 2 == 0)
            throw UsageError(
                "-ws: odd numbers from 3 to 63 (31 with the published kernels: a thread a neighbour)");
    return s;
}

} // namespace

int main(int argc, char** argv) {
    try {
        const Settings settings = parse(argc, argv);
        cudaDeviceProp device{};
        HSI_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
        std::printf("%s, %d multiprocessors\n", device.name, device.multiProcessorCount);
        bool good = true;
        for (const Size& size : settings.sizes)
            good = Bench(size, settings).run() && good;
        return good ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "spp_cuda_bench: %s\n", e.what());
        return 1;
    }
}
