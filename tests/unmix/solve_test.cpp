// SPDX-License-Identifier: MIT
// The solver's teams, as on a GPU, made of threads on the CPU: many lanes give the bits of one lane.
#include "support/memory_cube.h"
#include "unmix/mixture.h"
#include "unmix/unmix_scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hsi;
using unmix::Method;

constexpr int most_lanes = 8;

/// The data that the lanes of a team exchange.
struct Exchange {
    explicit Exchange(int lanes) : barrier(lanes) {}
    std::barrier<> barrier;
    std::array<double, most_lanes> number{};
    std::array<int, most_lanes> place{};
};

template <int Lanes>
struct Threads {
    static constexpr int lanes = Lanes;
    Exchange* exchange;
    int mine;

    int lane() const { return mine; }
    void sync() const { exchange->barrier.arrive_and_wait(); }
    bool any(bool is) const {
        int before = 0, all = 0;
        count(is, before, all);
        return all > 0;
    }
    double least(double value) const {
        show(value, 0);
        for (int i = 0; i < Lanes; ++i)
            value = std::min(value, exchange->number[static_cast<size_t>(i)]);
        sync();
        return value;
    }
    void best(double& most, int& k) const {
        show(most, k);
        for (int i = 0; i < Lanes; ++i) {
            const double other = exchange->number[static_cast<size_t>(i)];
            const int place = exchange->place[static_cast<size_t>(i)];
            if (other > most || (other == most && place < k)) {
                most = other;
                k = place;
            }
        }
        sync();
    }
    void count(bool is, int& before, int& all) const {
        show(0, is ? 1 : 0);
        before = all = 0;
        for (int i = 0; i < Lanes; ++i) {
            before += i < mine ? exchange->place[static_cast<size_t>(i)] : 0;
            all += exchange->place[static_cast<size_t>(i)];
        }
        sync();
    }

  private:
    void show(double value, int k) const {
        exchange->number[static_cast<size_t>(mine)] = value;
        exchange->place[static_cast<size_t>(mine)] = k;
        sync();
    }
};

/// The arrays of one pixel.
struct Numbers {
    explicit Numbers(size_t p)
        : factor(unmix::triangle(static_cast<int>(p))), abundances(p), trial(p), ones(p), index(p), state(p) {
    }
    unmix::Workspace space(const std::vector<double>& products) {
        unmix::Workspace w;
        w.products = products.data();
        w.factor = factor.data();
        w.abundances = abundances.data();
        w.trial = trial.data();
        w.ones = ones.data();
        w.index = index.data();
        w.state = state.data();
        return w;
    }
    std::vector<double> factor, abundances, trial, ones;
    std::vector<int> index;
    std::vector<unsigned char> state;
};

struct Pixel {
    std::vector<double> products;
    double squared = 0;
};

std::vector<Pixel> pixels_of(const unmix::Mixture& mixture, const test::Cube& cube) {
    std::vector<Pixel> pixels;
    for (int64_t i = 0; i < cube.shape.samples; ++i) {
        Pixel pixel{std::vector<double>(mixture.size()), 0};
        for (int b = 0; b < cube.shape.bands; ++b) {
            const auto x = static_cast<double>(cube.at(b, 0, i));
            pixel.squared += x * x;
            for (size_t k = 0; k < mixture.size(); ++k)
                pixel.products[k] += mixture.spectrum(k)[b] * x;
        }
        pixels.push_back(pixel);
    }
    return pixels;
}

/// Returns the abundances, and then the residual, of all pixels.
std::vector<double> solved_alone(const unmix::Mixture& mixture, const std::vector<Pixel>& pixels) {
    unmix::Solver solver(mixture);
    std::vector<double> all;
    for (const Pixel& pixel : pixels) {
        const double residual = solver.solve(pixel.products.data(), pixel.squared, true);
        all.insert(all.end(), solver.abundances().begin(), solver.abundances().end());
        all.push_back(residual);
    }
    return all;
}

template <int Lanes>
std::vector<double> solved_together(const unmix::Mixture& mixture, const std::vector<Pixel>& pixels) {
    Exchange exchange(Lanes);
    Numbers numbers(mixture.size());
    std::vector<double> all;
    const auto solve = [&](int lane) {
        const Threads<Lanes> team{&exchange, lane};
        for (const Pixel& pixel : pixels) {
            unmix::ActiveSet<Threads<Lanes>> active(mixture.problem(), numbers.space(pixel.products), team);
            active.solve(pixel.squared);
            const double residual = active.residual(pixel.squared);
            if (lane == 0) {
                all.insert(all.end(), numbers.abundances.begin(), numbers.abundances.end());
                all.push_back(residual);
            }
            team.sync();
        }
    };
    std::vector<std::thread> threads;
    for (int lane = 1; lane < Lanes; ++lane)
        threads.emplace_back(solve, lane);
    solve(0);
    for (auto& thread : threads)
        thread.join();
    return all;
}

template <int Lanes>
void compare(int endmembers, int bands, int64_t pixels, double likeness) {
    const auto e = test::spectra(endmembers, bands, static_cast<uint32_t>(endmembers), likeness);
    const auto cube = test::mixtures(e, pixels, 1, 3);
    for (const Method method : {Method::ucls, Method::nnls, Method::scls, Method::fcls}) {
        const unmix::Mixture mixture(e, method);
        const auto given = pixels_of(mixture, cube);
        const auto alone = solved_alone(mixture, given), together = solved_together<Lanes>(mixture, given);
        ASSERT_EQ(alone.size(), together.size());
        EXPECT_EQ(std::memcmp(alone.data(), together.data(), alone.size() * sizeof(double)), 0)
            << endmembers << " endmembers, " << Lanes << " lanes, method " << static_cast<int>(method);
    }
}

TEST(UnmixTeam, GivesTheBitsOfOneLane) {
    for (const int endmembers : {1, 2, 3, 8, 17}) { // fewer than the lanes, and several rows per lane
        compare<2>(endmembers, 40, 8, 0.3);
        compare<3>(endmembers, 40, 8, 0.999);
        compare<5>(endmembers, 40, 2, 0.5);
    }
}

} // namespace
