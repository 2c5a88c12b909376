// SPDX-License-Identifier: MIT
#include "core/error.h"
#include "endmembers/endmembers.h"
#include "parallel/thread_job.h"
#include "stream/pipeline.h"
#include "support/jacobi.h"
#include "support/memory_cube.h"
#include "support/simd_targets.h"
#include "support/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>

namespace hsi::test {
namespace {

using endmembers::Endmember;
using endmembers::Method;
using Vector = std::vector<long double>;

struct Cut {
    int64_t samples = 0, lines = 0;
    int lanes = 1;
    uint64_t memory = uint64_t{1} << 30;
};

endmembers::Extraction extract(const Cube& cube, const endmembers::Options& options, const Cut& cut = {}) {
    const MemorySource source(cube);
    const auto pass = [&](const std::string& name) {
        stream::PassOptions p;
        p.name = name;
        p.lanes = cut.lanes;
        p.tile_samples = cut.samples;
        p.tile_lines = cut.lines;
        p.memory = cut.memory;
        return p;
    };
    stream::StatisticsScan scan(cube.shape, stream::Statistics::moments);
    auto first = pass("moments");
    first.memory = uint64_t{1} << 30;
    stream::run_pass(source, scan, {}, first);
    return endmembers::extract(source, scan.result(), options, pass);
}

/// Returns mixtures of `pure` spectra with noise; a few pixels are pure.
Cube mixed_scene(int64_t samples, int64_t lines, int bands, int pure, uint32_t seed, double noise = 2) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::normal_distribution<double> normal;
    std::vector<std::vector<double>> spectra(static_cast<size_t>(pure));
    for (auto& s : spectra)
        for (int b = 0; b < bands; ++b)
            s.push_back(200 + 800 * uniform(random));
    Cube cube(samples, lines, bands);
    for (int64_t l = 0; l < lines; ++l)
        for (int64_t s = 0; s < samples; ++s) {
            std::vector<double> a;
            double total = 0;
            for (int k = 0; k < pure; ++k)
                total += a.emplace_back(-std::log(uniform(random) + 1e-12));
            for (int b = 0; b < bands; ++b) {
                double x = noise * normal(random);
                for (size_t k = 0; k < a.size(); ++k)
                    x += a[k] / total * spectra[k][static_cast<size_t>(b)];
                cube.at(b, l, s) = static_cast<float>(x);
            }
        }
    return cube;
}

/// The valid pixels and their statistics in long double.
struct Scene {
    explicit Scene(const Cube& cube) : bands(static_cast<size_t>(cube.shape.bands)), mean(bands, 0) {
        for (int64_t p = 0; p < cube.shape.pixels(); ++p) {
            Vector v;
            bool finite = true, any = false;
            for (size_t b = 0; b < bands; ++b) {
                const float value =
                    cube.values[b * static_cast<size_t>(cube.shape.pixels()) + static_cast<size_t>(p)];
                v.push_back(static_cast<long double>(value));
                finite = finite && std::isfinite(value);
                any = any || value != 0;
            }
            if (!finite || !any) continue;
            x.push_back(v);
            place.push_back(p);
        }
        const auto n = static_cast<long double>(x.size());
        for (const auto& v : x)
            for (size_t b = 0; b < bands; ++b)
                mean[b] += v[b] / n;
        covariance.assign(bands * bands, 0);
        correlation = covariance;
        for (const auto& v : x)
            for (size_t a = 0; a < bands; ++a)
                for (size_t b = 0; b < bands; ++b) {
                    covariance[a * bands + b] += (v[a] - mean[a]) * (v[b] - mean[b]) / n;
                    correlation[a * bands + b] += v[a] * v[b] / n;
                }
    }
    size_t bands;
    std::vector<Vector> x;
    std::vector<int64_t> place;
    Vector mean;
    Matrix covariance, correlation;
};

long double dot(const Vector& a, const Vector& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0L);
}

/// Returns the smallest index among values within 1e-10 of the greatest.
size_t greatest(const Vector& values) {
    const long double most = *std::max_element(values.begin(), values.end());
    return static_cast<size_t>(
        std::find_if(values.begin(), values.end(), [&](auto v) { return v >= most * (1 - 1e-10L); }) -
        values.begin());
}

Vector row(const Matrix& m, size_t n, size_t k) {
    return {m.begin() + static_cast<ptrdiff_t>(k * n), m.begin() + static_cast<ptrdiff_t>((k + 1) * n)};
}

/// Returns a row with the usual sign: its entry of greatest magnitude is positive.
Vector signed_row(const Matrix& m, size_t n, size_t k) {
    Vector v = row(m, n, k);
    const auto largest =
        *std::max_element(v.begin(), v.end(), [](auto a, auto b) { return std::fabs(a) < std::fabs(b); });
    if (largest < 0)
        for (auto& e : v)
            e = -e;
    return v;
}

void take_out(Vector& v, const std::vector<Vector>& basis) {
    for (int twice = 0; twice < 2; ++twice)
        for (const auto& q : basis) {
            const long double product = dot(v, q);
            for (size_t i = 0; i < v.size(); ++i)
                v[i] -= product * q[i];
        }
}

void normalise(Vector& v) {
    const long double length = std::sqrt(dot(v, v));
    for (auto& e : v)
        e /= length;
}

long double determinant(std::vector<Vector> a) {
    long double d = 1;
    for (size_t k = 0; k < a.size(); ++k) {
        size_t pivot = k;
        for (size_t i = k; i < a.size(); ++i)
            if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
        if (pivot != k) {
            std::swap(a[pivot], a[k]);
            d = -d;
        }
        d *= a[k][k];
        for (size_t i = k + 1; i < a.size(); ++i)
            for (size_t j = a.size(); j-- > k;)
                a[i][j] -= a[i][k] / a[k][k] * a[k][j];
    }
    return d;
}

struct Found {
    std::vector<int64_t> places;
    Vector scores;
};

/// Computes N-FINDR with the determinants of all candidates.
Found nfindr(const Cube& cube, size_t t) {
    const Scene scene(cube);
    const auto [values, vectors] = jacobi(scene.covariance, scene.bands);
    const auto n = static_cast<long double>(scene.x.size());
    std::vector<Vector> y, plain; // y: scaled, with a leading 1; plain: the components
    for (const auto& v : scene.x) {
        Vector centred = v, one{1}, other;
        for (size_t b = 0; b < scene.bands; ++b)
            centred[b] -= scene.mean[b];
        for (size_t k = 0; k + 1 < t; ++k) {
            other.push_back(dot(row(vectors, scene.bands, k), centred));
            one.push_back(other.back() / std::sqrt(values[k] * n / (n - 1)));
        }
        y.push_back(one);
        plain.push_back(other);
    }
    std::vector<size_t> chosen;
    std::vector<Vector> basis;
    for (size_t k = 0; k < t; ++k) {
        Vector left;
        for (const auto& v : y) {
            Vector r = v;
            take_out(r, basis);
            left.push_back(dot(r, r));
        }
        chosen.push_back(greatest(left));
        basis.push_back(y[chosen.back()]);
        Vector& q = basis.back();
        take_out(q, {basis.begin(), basis.end() - 1});
        normalise(q);
    }
    const auto volume = [&](const std::vector<size_t>& of) {
        std::vector<Vector> rows;
        for (const size_t i : of)
            rows.push_back(y[i]);
        return std::fabs(determinant(rows));
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t j = 0; j < t; ++j) {
            Vector all;
            auto trial = chosen;
            for (size_t i = 0; i < y.size(); ++i) {
                trial[j] = i;
                all.push_back(volume(trial));
            }
            const size_t best = greatest(all);
            if (all[best] > volume(chosen) * (1 + 1e-10L)) {
                chosen[j] = best;
                changed = true;
            }
        }
    }
    Found found;
    for (size_t j = 0; j < t; ++j) {
        found.places.push_back(scene.place[chosen[j]]);
        std::vector<Vector> edges; // edges of the flat through the other vertices
        const size_t origin = chosen[j == 0 ? 1 : 0];
        for (size_t k = 0; k < t; ++k) {
            if (k == j || chosen[k] == origin) continue;
            Vector e = plain[chosen[k]];
            for (size_t i = 0; i < e.size(); ++i)
                e[i] -= plain[origin][i];
            take_out(e, edges);
            normalise(e);
            edges.push_back(e);
        }
        Vector height = plain[chosen[j]];
        for (size_t i = 0; i < height.size(); ++i)
            height[i] -= plain[origin][i];
        take_out(height, edges);
        found.scores.push_back(std::sqrt(dot(height, height)));
    }
    return found;
}

/// Computes VCA step by step.
Found vca(const Cube& cube, size_t t, uint64_t seed, bool& projective) {
    const Scene scene(cube);
    const size_t bands = scene.bands;
    const auto [values, vectors] = jacobi(scene.covariance, bands);
    long double all = 0, inside = dot(scene.mean, scene.mean);
    for (size_t b = 0; b < bands; ++b)
        all += scene.correlation[b * (bands + 1)];
    for (size_t k = 0; k < t; ++k)
        inside += values[k];
    const long double snr =
        10 * std::log10((inside - static_cast<long double>(t) / bands * all) / (all - inside));
    projective = !(snr < 15 + 10 * std::log10(static_cast<long double>(t)));
    std::vector<Vector> y;
    std::vector<size_t> index;
    if (projective) {
        const auto frame = jacobi(scene.correlation, bands).second;
        Vector u;
        for (size_t k = 0; k < t; ++k)
            u.push_back(dot(signed_row(frame, bands, k), scene.mean));
        for (size_t i = 0; i < scene.x.size(); ++i) {
            Vector s;
            for (size_t k = 0; k < t; ++k)
                s.push_back(dot(signed_row(frame, bands, k), scene.x[i]));
            const long double divisor = dot(s, u);
            if (!(divisor > 0)) continue;
            for (auto& e : s)
                e /= divisor;
            y.push_back(s);
            index.push_back(i);
        }
    } else {
        long double longest = 0;
        for (size_t i = 0; i < scene.x.size(); ++i) {
            Vector s, centred = scene.x[i];
            for (size_t b = 0; b < bands; ++b)
                centred[b] -= scene.mean[b];
            for (size_t k = 0; k + 1 < t; ++k)
                s.push_back(dot(signed_row(vectors, bands, k), centred));
            longest = std::max(longest, std::sqrt(dot(s, s)));
            y.push_back(s);
            index.push_back(i);
        }
        for (auto& v : y)
            v.push_back(longest);
    }
    uint64_t state = seed;
    const auto uniform = [&] {
        state += 0x9E3779B97F4A7C15u;
        uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * std::pow(2.0, -53);
    };
    Found found;
    std::vector<Vector> basis;
    for (size_t k = 0; k < t; ++k) {
        Vector f;
        while (f.size() < t) {
            const double r = std::sqrt(-2 * std::log(uniform())), a = 2 * std::acos(-1.0) * uniform();
            f.push_back(r * std::cos(a));
            f.push_back(r * std::sin(a));
        }
        f.resize(t);
        if (k == 0) f.back() = 0;
        take_out(f, basis);
        normalise(f);
        Vector along;
        for (const auto& v : y)
            along.push_back(std::fabs(dot(f, v)));
        const size_t best = greatest(along);
        found.places.push_back(scene.place[index[best]]);
        found.scores.push_back(along[best]);
        basis.push_back(y[best]);
        take_out(basis.back(), {basis.begin(), basis.end() - 1});
        normalise(basis.back());
    }
    return found;
}

void expect_same(const endmembers::Extraction& got, const Found& want, int64_t samples) {
    ASSERT_EQ(got.members.size(), want.places.size());
    for (size_t k = 0; k < want.places.size(); ++k) {
        const auto& m = got.members[k];
        EXPECT_EQ(m.line * samples + m.sample, want.places[k]) << k;
        const auto score = static_cast<double>(want.scores[k]);
        EXPECT_NEAR(m.score, score, 1e-8 * score) << k;
    }
}

bool same(const endmembers::Extraction& a, const endmembers::Extraction& b) {
    return a.members.size() == b.members.size() &&
           std::equal(a.members.begin(), a.members.end(), b.members.begin(),
                      [](const Endmember& x, const Endmember& y) {
                          return x.line == y.line && x.sample == y.sample &&
                                 std::memcmp(&x.score, &y.score, sizeof x.score) == 0;
                      });
}

TEST(Endmembers, NfindrIsTheDefinition) {
    for (const auto& [bands, pure, t] : {std::tuple{6, 4, 4}, {9, 5, 6}, {5, 3, 2}, {4, 4, 5}}) {
        const Cube cube = mixed_scene(23, 17, bands, pure, static_cast<uint32_t>(bands * 10 + t));
        const auto got = extract(cube, {Method::nfindr, t});
        expect_same(got, nfindr(cube, static_cast<size_t>(t)), 23);
        EXPECT_TRUE(got.warnings.empty());
        EXPECT_GE(got.sweeps, 1);
    }
}

TEST(Endmembers, VcaIsTheDefinition) {
    for (const auto& [noise, want_projective] : {std::pair{1.0, true}, {60.0, false}})
        for (const uint64_t seed : {1u, 2u, 77u})
            for (const int t : {2, 3, 5}) {
                const Cube cube = mixed_scene(21, 19, 8, 5, 4, noise);
                bool projective = false;
                const auto want = vca(cube, static_cast<size_t>(t), seed, projective);
                const auto got = extract(cube, {Method::vca, t, seed});
                EXPECT_EQ(got.projective, projective);
                if (t > 2) {
                    EXPECT_EQ(projective, want_projective);
                }
                expect_same(got, want, 21);
            }
}

TEST(Endmembers, RandomNumbersAreThePublishedOnes) {
    endmembers::RandomVectors zero(0);
    EXPECT_EQ(zero.next(), 0xE220A8397B1DCDAFu);
    EXPECT_EQ(zero.next(), 0x6E789E6AA1B965F4u);
    EXPECT_EQ(zero.next(), 0x06C45D188009454Fu);
    endmembers::RandomVectors one(1);
    const auto w = one.normal_numbers(4);
    const double want[] = {-0.02824975, -1.06561765, -0.22791952, 0.08309417};
    for (size_t i = 0; i < 4; ++i)
        EXPECT_NEAR(w[i], want[i], 5e-9);
    endmembers::RandomVectors odd(1), even(1); // the second number of the last pair is dropped
    odd.normal_numbers(3);
    even.normal_numbers(4);
    EXPECT_EQ(odd.next(), even.next());
}

std::vector<endmembers::Options> every_search(int count) {
    return {
        {Method::nfindr, count, 3, false}, {Method::vca, count, 3, false}, {Method::nfindr, count, 3, true}};
}

TEST(Endmembers, AreBitIdenticalForEveryTilingThreadsAndMemory) {
    Cube cube = mixed_scene(300, 70, 12, 6, 9);
    for (int64_t l = 10; l < 30; ++l)
        for (int64_t s = 50; s < 90; ++s)
            make_invalid(cube, l, s, static_cast<int>(s % 12));
    for (const endmembers::Options& options : every_search(6)) {
        const auto whole = extract(cube, options);
        EXPECT_TRUE(whole.in_memory);
        for (const Cut& cut : {Cut{7, 5, 1}, Cut{300, 1, 3}, Cut{64, 64, 2}, Cut{0, 0, 4}}) {
            const auto cut_up = extract(cube, options, cut);
            EXPECT_TRUE(same(whole, cut_up));
        }
        const auto streamed = extract(cube, options, {128, 16, 2, 1200000});
        EXPECT_FALSE(streamed.in_memory);
        EXPECT_TRUE(same(whole, streamed));
        EXPECT_EQ(streamed.looks, whole.looks);
        EXPECT_EQ(static_cast<int>(streamed.passes.size()), streamed.looks);
        EXPECT_EQ(whole.passes.size(), 1u);
    }
}

TEST(Endmembers, RanksFindWhatOneProcessFinds) {
    Cube cube = mixed_scene(300, 70, 12, 6, 9);
    for (int64_t l = 10; l < 30; ++l)
        for (int64_t s = 50; s < 90; ++s)
            make_invalid(cube, l, s, static_cast<int>(s % 12));
    for (const endmembers::Options& options : every_search(6)) {
        const auto alone = extract(cube, options);
        EXPECT_FALSE(extract(cube, options, {64, 16, 1, 1200000}).in_memory);
        for (const int size : {2, 3, 5})
            for (const Cut& cut :
                 {Cut{}, Cut{64, 32, 2}, Cut{300, 70, 1}, Cut{64, 16, 1, 1200000}, Cut{64, 8, 1, 300000}})
                on_ranks(size, [&](parallel::Ranks& ranks, CancelFlag&) {
                    const parallel::ThreadJob job(ranks);
                    const auto together = extract(cube, options, cut);
                    EXPECT_TRUE(same(alone, together));
                    EXPECT_EQ(together.looks, alone.looks);
                    for (const auto& pass : together.passes)
                        EXPECT_EQ(pass.ranks.size(), static_cast<size_t>(size)) << pass.name;
                    // This memory is too small for one process, but enough for several.
                    if (cut.memory == 1200000) {
                        EXPECT_TRUE(together.in_memory) << size;
                    }
                });
    }
}

TEST(Endmembers, AreTheSameInEveryInstructionSetThatFuses) {
    const Cube cube = mixed_scene(61, 37, 9, 5, 11);
    for (const endmembers::Options& options : every_search(5)) {
        std::vector<endmembers::Extraction> fused;
        for_every_simd([&](const std::string& name) {
            auto got = extract(cube, options);
            if (!is_fused(name)) return;
            EXPECT_TRUE(same(got, fused.empty() ? got : fused.front())) << name;
            fused.push_back(std::move(got));
        });
    }
}

TEST(Endmembers, InvalidPixelsAreNeverChosen) {
    Cube cube = mixed_scene(30, 20, 6, 4, 12);
    const auto before = extract(cube, {Method::nfindr, 4});
    for (int64_t s = 0; s < 30; ++s) {
        for (int b = 0; b < 6; ++b)
            cube.at(b, 7, s) = s % 2 ? 0.0f : 1e6f;
        make_invalid(cube, 7, s - s % 2, 3, std::numeric_limits<float>::infinity());
    }
    for (const Method method : {Method::nfindr, Method::vca})
        for (const auto& m : extract(cube, {method, 4}).members)
            EXPECT_NE(m.line, 7);
    expect_same(extract(cube, {Method::nfindr, 4}), nfindr(cube, 4), 30);
}

TEST(Endmembers, OfEqualPixelsTheFirstIsChosen) {
    // The scene consists of 2 x 2 copies of a small scene, so each pixel occurs four times.
    const Cube small = mixed_scene(20, 15, 6, 4, 13);
    Cube cube(40, 30, 6);
    for (int b = 0; b < 6; ++b)
        for (int64_t l = 0; l < 30; ++l)
            for (int64_t s = 0; s < 40; ++s)
                cube.at(b, l, s) = small.at(b, l % 15, s % 20);
    for (const Method method : {Method::nfindr, Method::vca})
        for (const Cut& cut : {Cut{}, Cut{13, 30, 3}, Cut{20, 15, 2}})
            for (const auto& m : extract(cube, {method, 4}, cut).members) {
                EXPECT_LT(m.line, 15);
                EXPECT_LT(m.sample, 20);
            }
}

TEST(Endmembers, NfindrReplacesVerticesAsTheDefinitionDoes) {
    int replacements = 0;
    for (const uint32_t seed : {14u, 15u, 16u, 17u}) {
        const Cube cube = mixed_scene(30, 25, 10, 7, seed, 150);
        const auto found = extract(cube, {Method::nfindr, 7});
        expect_same(found, nfindr(cube, 7), 30);
        replacements += found.replacements;
    }
    EXPECT_GT(replacements, 0);
}

TEST(Endmembers, NestedSetsHoldThoseOfFewer) {
    const Cube cube = mixed_scene(40, 30, 10, 6, 21, 40);
    for (const Method method : {Method::nfindr, Method::vca}) {
        const auto all = extract(cube, {method, 8, 3, true});
        ASSERT_EQ(all.members.size(), 8u);
        for (int t = 2; t < 8 && method == Method::nfindr; ++t) {
            const auto fewer = extract(cube, {method, t, 3, true});
            ASSERT_EQ(fewer.members.size(), static_cast<size_t>(t));
            for (size_t k = 0; k < fewer.members.size(); ++k) {
                EXPECT_EQ(fewer.members[k].line, all.members[k].line) << t;
                EXPECT_EQ(fewer.members[k].sample, all.members[k].sample) << t;
                EXPECT_NEAR(fewer.members[k].score, all.members[k].score, 1e-9 * all.members[k].score);
            }
        }
    }
    // With two endmembers there is nothing greater, and N-FINDR has the same result.
    const auto grown = extract(cube, {Method::nfindr, 2, 1, true}),
               searched = extract(cube, {Method::nfindr, 2});
    const auto places = [](const endmembers::Extraction& found) {
        std::vector<std::tuple<int64_t, int64_t>> list;
        for (const auto& m : found.members)
            list.emplace_back(m.line, m.sample);
        std::sort(list.begin(), list.end());
        return list;
    };
    EXPECT_EQ(places(grown), places(searched));
    EXPECT_EQ(extract(cube, {Method::nfindr, 11, 1, true}).members.size(), 11u);
    EXPECT_THROW(extract(cube, {Method::nfindr, 12, 1, true}), UsageError);
}

TEST(Endmembers, FewComponentsGiveFewerWithAWarning) {
    Cube cube(20, 20, 5);
    for (int64_t l = 0; l < 20; ++l)
        for (int64_t s = 0; s < 20; ++s)
            for (int b = 0; b < 5; ++b)
                cube.at(b, l, s) = static_cast<float>(10 + l * (b + 1) + 3 * s * (b % 2)); // a plane
    const auto found = extract(cube, {Method::nfindr, 5});
    EXPECT_EQ(found.members.size(), 3u);
    ASSERT_EQ(found.warnings.size(), 1u);
    EXPECT_NE(found.warnings[0].find("3 endmembers instead of 5"), std::string::npos);
    const auto less = extract(cube, {Method::vca, 5});
    EXPECT_LT(less.members.size(), 5u);
    EXPECT_EQ(less.warnings.size(), 1u);
    EXPECT_THROW(extract(Cube(9, 9, 4, 3.0f), {Method::nfindr, 2}), Error);
}

TEST(Endmembers, ImpossibleNumbersNameTheRange) {
    const Cube cube = mixed_scene(8, 6, 5, 3, 15);
    const auto refused = [&](const Cube& scene, Method method, int t, const std::string& range) {
        try {
            extract(scene, {method, t});
            ADD_FAILURE() << t << " was taken";
        } catch (const UsageError& e) {
            EXPECT_NE((std::string(e.what()) + e.advice()).find(range), std::string::npos) << e.what();
        }
    };
    for (int t : {-1, 0, 1})
        refused(cube, Method::nfindr, t, "2 to 6");
    refused(cube, Method::nfindr, 7, "2 to 6");
    refused(cube, Method::vca, 6, "2 to 5");
    EXPECT_EQ(extract(cube, {Method::nfindr, 6}).members.size(), 6u);
    EXPECT_EQ(extract(cube, {Method::vca, 5}).members.size(), 5u);
    refused(mixed_scene(3, 1, 5, 3, 16), Method::nfindr, 4, "2 to 3");
}

} // namespace
} // namespace hsi::test
