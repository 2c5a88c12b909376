// SPDX-License-Identifier: MIT
#include "support/raster_fixtures.h"

#include "raster/output_set.h"

namespace hsi::test {
namespace {

using raster::OutputOptions;
using raster::OutputSet;
using raster::OutputSpec;

OutputOptions to(const std::string& path, const std::string& format) {
    OutputOptions options;
    options.path = path;
    options.format = format;
    return options;
}

OutputSpec of(int bands) {
    OutputSpec spec;
    spec.shape = {9, 4, bands};
    return spec;
}

void write_all(const OutputSet& set) {
    for (auto* sink : set.sinks()) {
        std::vector<float> values(static_cast<size_t>(36 * sink->shape().bands));
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i) + 0.5f * static_cast<float>(sink->shape().bands);
        sink->write({0, 0, 9, 4}, CubeView<float>::packed(values.data(), sink->shape().bands, 4, 9));
    }
}

TEST(OutputSet, MakesWhatWasPlannedInItsOrder) {
    const TempFolder folder;
    OutputSet set;
    EXPECT_TRUE(set.empty());
    EXPECT_TRUE(set.sinks().empty());
    set.plan(to(folder / "cube.tif", "GTiff"), of(3));
    set.plan(to(folder / "single.dat", "ENVI"), of(1));
    EXPECT_EQ(set.size(), 2u);
    set.check();
    EXPECT_TRUE(folder.files().empty()) << "planning and checking make no file";
    EXPECT_EQ(set.cache_bytes(), 0u);
    set.create(nullptr);
    const auto sinks = set.sinks();
    ASSERT_EQ(sinks.size(), 2u);
    EXPECT_EQ(sinks[0]->shape().bands, 3);
    EXPECT_EQ(sinks[1]->shape().bands, 1);
    EXPECT_EQ(set.layout().block_samples, sinks[0]->layout().block_samples);
    EXPECT_EQ(set.layout().block_lines, sinks[0]->layout().block_lines);
    uint64_t bytes = 0;
    for (const auto* sink : sinks)
        bytes += dynamic_cast<const raster::RasterSink*>(sink)->cache_bytes();
    EXPECT_EQ(set.cache_bytes(), bytes);
    EXPECT_THROW(set.create(nullptr), Error) << "made twice";
    write_all(set);
    EXPECT_FALSE(fs::exists(folder / "cube.tif")) << "before commit()";
    set.commit();
    const auto cube = gdal_values(folder / "cube.tif"), single = gdal_values(folder / "single.dat");
    ASSERT_EQ(cube.size(), 108u);
    ASSERT_EQ(single.size(), 36u);
    EXPECT_EQ(cube[40], 41.5f);
    EXPECT_EQ(single[35], 35.5f);
}

TEST(OutputSet, RefusesTheOneThatCannotBe) {
    const TempFolder folder;
    write_text(folder / "there.tif", "old");
    OutputSet set;
    set.plan(to(folder / "new.tif", "GTiff"), of(1));
    set.plan(to(folder / "there.tif", "GTiff"), of(1));
    try {
        set.check();
        FAIL() << "an existing output without overwrite was accepted";
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("there.tif"), std::string::npos) << e.what();
    }
    EXPECT_THROW(set.create(nullptr), Error);
    EXPECT_TRUE(set.sinks().empty());
    EXPECT_EQ(folder.files(), std::vector<std::string>{"there.tif"})
        << "the first output's file is gone again";
    EXPECT_EQ(read_text(folder / "there.tif"), "old");
}

TEST(OutputSet, LeavesNothingWithoutCommit) {
    const TempFolder folder;
    {
        OutputSet set;
        set.plan(to(folder / "a.tif", "GTiff"), of(2));
        set.plan(to(folder / "b.dat", "ENVI"), of(2));
        set.create(nullptr);
        write_all(set);
    }
    EXPECT_TRUE(folder.files().empty());
}

} // namespace
} // namespace hsi::test
