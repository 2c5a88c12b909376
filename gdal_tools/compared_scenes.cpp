// SPDX-License-Identifier: MIT
#include "compared_scenes.h"

#include "core/error.h"
#include "model/band_match.h"
#include "stream/band_statistics.h"
#include "stream/value_parts.h"
#include "tool/words.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

namespace hsi::tools {
namespace {

/// A source whose bands are chosen, some perhaps more than once, from those of another one.
class PickedSource final : public stream::CubeSource {
  public:
    PickedSource(std::shared_ptr<const stream::CubeSource> from, std::vector<int> picks)
        : m_from(std::move(from)), m_picks(std::move(picks)) {}
    stream::CubeShape shape() const override {
        auto shape = m_from->shape();
        shape.bands = static_cast<int>(m_picks.size());
        return shape;
    }
    stream::BlockLayout layout() const override { return m_from->layout(); }
    uint64_t stored_bytes_per_pixel() const override { return m_from->stored_bytes_per_pixel(); }
    uint64_t reader_bytes() const override { return m_from->reader_bytes(); }
    std::unique_ptr<stream::CubeReader> open_reader() const override {
        struct Reader final : stream::CubeReader {
            Reader(std::unique_ptr<stream::CubeReader> r, const std::vector<int>& p, int b)
                : reader(std::move(r)), picks(p), bands(b) {}
            void read(const Rect& window, const CubeView<float>& dst) override {
                const auto line = static_cast<size_t>(window.w), band = line * static_cast<size_t>(window.h);
                buffer.resize(band * static_cast<size_t>(bands));
                const auto view = CubeView<float>::packed(buffer.data(), bands, window.h, window.w);
                reader->read(window, view);
                for (size_t k = 0; k < picks.size(); ++k)
                    for (int64_t y = 0; y < window.h; ++y)
                        std::copy_n(view.row(picks[k], y), window.w, dst.row(static_cast<int>(k), y));
            }
            void prefetch(const Rect& window) override { reader->prefetch(window); }
            uint64_t look_ahead(uint64_t bytes) override { return reader->look_ahead(bytes); }
            std::unique_ptr<stream::CubeReader> reader;
            const std::vector<int>& picks;
            int bands;
            std::vector<float> buffer;
        };
        return std::make_unique<Reader>(m_from->open_reader(), m_picks, m_from->shape().bands);
    }

  private:
    std::shared_ptr<const stream::CubeSource> m_from;
    std::vector<int> m_picks;
};

/// All bands of the file.
ComparedScene whole(std::shared_ptr<raster::RasterSource> file) { return {file, file, file->bands(), {}}; }

/// Some of them (indices).
ComparedScene picked(std::shared_ptr<raster::RasterSource> file, std::vector<int> picks) {
    ComparedScene out{file, nullptr, {}, picks};
    for (const int k : picks)
        out.bands.push_back(file->bands()[static_cast<size_t>(k)]);
    out.cube = std::make_shared<PickedSource>(file, std::move(picks));
    return out;
}

/// The same without some of its bands (indices, ascending).
ComparedScene without(const ComparedScene& o, const std::vector<int>& empty) {
    if (o.picks.empty()) return whole(o.file->without_bands(empty));
    std::vector<int> kept;
    for (int k = 0; k < static_cast<int>(o.picks.size()); ++k)
        if (!std::binary_search(empty.begin(), empty.end(), k))
            kept.push_back(o.picks[static_cast<size_t>(k)]);
    return picked(o.file, std::move(kept));
}

std::string size_text(const ComparedScene& o) {
    const auto s = o.cube->shape();
    return o.file->path() + " is " + std::to_string(s.samples) + "x" + std::to_string(s.lines) + "x" +
           std::to_string(s.bands);
}

} // namespace

ComparedScene open_one(raster::OpenOptions options, const std::vector<int>& wanted) {
    if (wanted.empty()) {
        return whole(raster::RasterSource::open(options));
    }
    options.bands = wanted;
    std::sort(options.bands.begin(), options.bands.end());
    options.bands.erase(std::unique(options.bands.begin(), options.bands.end()), options.bands.end());
    auto file = raster::RasterSource::open(options);
    if (options.bands == wanted) return whole(file);
    std::vector<int> picks;
    for (int b : wanted)
        picks.push_back(static_cast<int>(std::lower_bound(options.bands.begin(), options.bands.end(), b) -
                                         options.bands.begin()));
    return picked(file, std::move(picks));
}

int value_parts(const ComparedScene& a, const ComparedScene& b) {
    return a.file->exact_in_float() && b.file->exact_in_float() ? 1 : stream::value_parts;
}

stream::StackedSource side_by_side(const ComparedScene& a, const ComparedScene& b) {
    if (value_parts(a, b) == 1) return stream::StackedSource({a.cube, b.cube});
    std::vector<std::shared_ptr<const stream::CubeSource>> cubes;
    for (const ComparedScene* scene : {&a, &b}) {
        cubes.push_back(scene->file->in_sums());
        if (scene->picks.empty()) continue;
        std::vector<int> parts;
        for (const int k : scene->picks)
            for (int part = 0; part < stream::value_parts; ++part)
                parts.push_back(k * stream::value_parts + part);
        cubes.back() = std::make_shared<PickedSource>(cubes.back(), std::move(parts));
    }
    return stream::StackedSource(std::move(cubes));
}

void match_by_wavelength(tool::Run& run, ComparedScene& a, ComparedScene& b) {
    const auto matched = model::common_bands(a.file->wavelengths_nm(), b.file->wavelengths_nm());
    if (matched.empty()) return;
    std::vector<int> alone, picks, others;
    for (int k = 0; k < static_cast<int>(matched.size()); ++k) {
        const int in_other = matched[static_cast<size_t>(k)];
        if (in_other < 0)
            alone.push_back(k);
        else
            picks.push_back(in_other);
    }
    for (int k = 0; k < b.file->shape().bands; ++k)
        if (std::find(picks.begin(), picks.end(), k) == picks.end()) others.push_back(k);
    const bool in_order = std::is_sorted(picks.begin(), picks.end());
    if (alone.empty() && others.empty() && in_order) return;
    if (picks.empty())
        throw Error("no band of " + a.file->path() + " lies at the wavelength of one of " + b.file->path(),
                    "-any-wavelengths compares them in their order, -band pair by pair.");
    run.note("Bands are compared by wavelength: " + std::to_string(picks.size()) + " are common; " +
             std::to_string(alone.size()) + " of " + a.file->path() + " and " +
             std::to_string(others.size()) + " of " + b.file->path() + " have no counterpart");
    a = whole(alone.empty() ? a.file : a.file->without_bands(alone));
    b = in_order ? whole(b.file->without_bands(others)) : picked(b.file, std::move(picks));
}

bool leave_out_empty_bands(tool::Run& run, ComparedScene& a, ComparedScene& b) {
    std::vector<int> empty;
    for (const ComparedScene* scene : {&a, &b}) {
        stream::BandStatisticsScan scan(scene->cube->shape().bands);
        run.add_pass(stream::run_pass(*scene->cube, scan, {}, run.pass("statistics", 0)));
        const auto found = scan.result().empty_bands();
        empty.insert(empty.end(), found.begin(), found.end());
    }
    std::sort(empty.begin(), empty.end());
    empty.erase(std::unique(empty.begin(), empty.end()), empty.end());
    if (empty.empty() || empty.size() == a.bands.size()) return false;
    std::vector<int> numbers, of_other;
    for (int k : empty) {
        numbers.push_back(a.bands[static_cast<size_t>(k)]);
        of_other.push_back(b.bands[static_cast<size_t>(k)]);
    }
    run.warn(
        "no valid value in band " + tool::list_text(numbers) +
        (of_other == numbers ? std::string() : " or in band " + tool::list_text(of_other) + " of the other") +
        ": left out");
    run.report()["bands_without_values"] = numbers;
    a = without(a, empty);
    b = without(b, empty);
    return true;
}

void check_alike(tool::Run& run, const ComparedScene& a, const ComparedScene& b) {
    const auto sa = a.cube->shape(), sb = b.cube->shape();
    if (sa.samples != sb.samples || sa.lines != sb.lines)
        throw Error(size_text(a) + ", " + size_text(b) + ": only scenes of one size can be compared",
                    "Cut the larger one, for example with gdal_translate -srcwin.");
    if (sa.bands != sb.bands)
        throw Error(size_text(a) + ", " + size_text(b) + " bands: their numbers differ",
                    "Choose bands with -b or pairs of bands with -band; -bbl ignore takes bands that are "
                    "marked bad.");
    double ga[6], gb[6];
    const bool ha = a.file->geotransform(ga), hb = b.file->geotransform(gb);
    if (!ha || !hb) return;
    const double pixel = std::hypot(ga[1], ga[4]);
    double apart = 0; // largest distance of a corner from its counterpart
    for (int corner = 0; corner < 4; ++corner) {
        const double x = corner & 1 ? static_cast<double>(sa.samples) : 0,
                     y = corner & 2 ? static_cast<double>(sa.lines) : 0;
        apart = std::max(apart, std::hypot(ga[0] - gb[0] + x * (ga[1] - gb[1]) + y * (ga[2] - gb[2]),
                                           ga[3] - gb[3] + x * (ga[4] - gb[4]) + y * (ga[5] - gb[5])));
    }
    if (apart > 0.01 * pixel)
        run.warn("the georeferences of " + a.file->path() + " and " + b.file->path() +
                 " differ; pixels are compared by line and sample");
}

} // namespace hsi::tools
