// SPDX-License-Identifier: MIT
// The words that a shell may offer next.
#include "terminal/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace hsi::terminal {
namespace {

using Words = std::vector<std::string>;

struct Settings {
    int window = 5;
    std::string method = "osp", alpha, labels;
    std::vector<std::string> layer_options;
    bool whiten = false;
};

Words lines(const std::string& text) {
    std::istringstream stream(text);
    Words all;
    for (std::string line; std::getline(stream, line);)
        all.push_back(line);
    return all;
}

/// Returns the completions of a tool that reads a scene and writes a raster.
Words next(const Words& words) {
    const tool::Definition definition{
        "frame", "A frame", "It frames.", {}, "", [](tool::Builder& args) {
            auto& s = args.settings<Settings>();
            args.add_source();
            args.add_destination();
            args.add_compute();
            args.option("ws", s.window, "Window size");
            args.choice<std::string>("method", s.method, "Method", {{"osp", "osp"}, {"gs", "gs"}});
            args.output("alpha", s.alpha, tool::Content::raster, "Alpha");
            args.flag("whiten", s.whiten, "Whiten");
        }};
    const tool::Declaration declaration(definition);
    return lines(completions(declaration, words));
}

/// Returns the completions of a tool that writes points.
Words next_of_points(const Words& words) {
    const tool::Definition definition{
        "points", "Points", "It writes points.", {}, "", [](tool::Builder& args) {
            auto& s = args.settings<Settings>();
            args.add_source();
            args.output_argument("dst", s.labels, tool::Content::vector, "Points");
            args.output("alpha", s.alpha, tool::Content::raster, "Alpha");
            args.option("of", s.method, "Format").speaks(tool::Vocabulary::vector_drivers);
            args.option("lco", s.layer_options, "Layer creation option");
            args.option("co", s.layer_options, "Creation option of -alpha");
        }};
    const tool::Declaration declaration(definition);
    return lines(completions(declaration, words));
}

bool has(const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

const Words files{"FILES"};

TEST(Completion, OffersFilesForArguments) {
    EXPECT_EQ(next({}), files);
    EXPECT_EQ(next({""}), files);
    EXPECT_EQ(next({"scene.img", ""}), files);
    EXPECT_EQ(next({"-whiten", "a file with spac"}), files);
    EXPECT_EQ(next({"-ws", "5", "sce"}), files);
}

TEST(Completion, OffersFilesForOptionsThatNameThem) {
    EXPECT_EQ(next({"-alpha", ""}), files);
    EXPECT_EQ(next({"--alpha", "al"}), files);
    EXPECT_EQ(next({"-report", "-"}), files);
    EXPECT_EQ(next({"--optfile", ""}), files);
}

TEST(Completion, OffersOptionsAsTheyBegin) {
    EXPECT_EQ(next({"-w"}), (Words{"-whiten", "-ws"}));
    EXPECT_EQ(next({"--w"}), (Words{"--whiten", "--ws"}));
    EXPECT_EQ(next({"-srcn"}), (Words{"-srcnodata"}));
    EXPECT_EQ(next({"--json"}), (Words{"--json-usage"}));
    EXPECT_TRUE(has(next({"-"}), "-memory"));
    EXPECT_TRUE(has(next({"-"}), "--help"));
}

TEST(Completion, OffersAnOptionAgainOnlyWhereItMayBeRepeated) {
    EXPECT_EQ(next({"-ws", "5", "-w"}), (Words{"-whiten"}));
    EXPECT_EQ(next({"-whiten", "-w"}), (Words{"-ws"}));
    EXPECT_TRUE(has(next({"-co", "TILED=YES", "-c"}), "-co"));
}

TEST(Completion, OffersChoicesWhateverTheirCase) {
    EXPECT_EQ(next({"-method", ""}), (Words{"osp", "gs"}));
    EXPECT_EQ(next({"-method", "G"}), (Words{"gs"}));
    EXPECT_EQ(next({"-bbl", "u"}), (Words{"use"}));
    EXPECT_EQ(next({"-device", "c"}), (Words{"cpu", "cuda", "cuda:0"}));
}

TEST(Completion, OffersNothingWhereAnyNumberMayStand) {
    EXPECT_EQ(next({"-ws", ""}), Words{});
    EXPECT_EQ(next({"-srcwin", "0", "0", ""}), Words{});
    EXPECT_EQ(next({"--config", "GDAL_NUM_THREADS", ""}), Words{});
    EXPECT_EQ(next({"-srcwin", "0", "0", "9", "9", ""}), files); // all four numbers are present
}

TEST(Completion, KnowsNoOptionsBehindTwoDashes) {
    EXPECT_EQ(next({"--", "-w"}), files);
    EXPECT_EQ(next({"-q", "--", "-of", "-w"}), files);
}

TEST(Completion, OffersNamesThatGdalKnows) {
    EXPECT_EQ(next({"-of", "gtif"}), (Words{"GTiff"}));
    EXPECT_EQ(next({"-ot", "float"}), (Words{"Float32", "Float64"}));
    EXPECT_TRUE(has(next({"-if", ""}), "ENVI"));
    EXPECT_TRUE(has(next_of_points({"-of", "g"}), "GPKG"));
    EXPECT_FALSE(has(next_of_points({"-of", "g"}), "GTiff"));
    EXPECT_EQ(next({"--format", "gtif"}), (Words{"GTiff"}));
}

TEST(Completion, OffersCreationOptionsOfTheFormatThatIsNamed) {
    EXPECT_EQ(next({"-of", "ENVI", "-co", "inter"}), (Words{"INTERLEAVE="}));
    EXPECT_TRUE(has(next({"-of", "GTiff", "-co", ""}), "TILED="));
    EXPECT_FALSE(has(next({"-of", "ENVI", "-co", ""}), "TILED="));
    EXPECT_EQ(next({"-of", "NoSuchFormat", "-co", ""}), Words{});
}

TEST(Completion, OffersCreationOptionsOfTheFormatThatTheExtensionMeans) {
    EXPECT_FALSE(has(next({"src.img", "dst.dat", "-co", ""}), "TILED="));
    EXPECT_TRUE(has(next({"src.dat", "dst.tif", "-co", ""}), "TILED="));
    EXPECT_TRUE(has(next({"-alpha", "a.tif", "-co", ""}), "TILED="));
    EXPECT_TRUE(has(next({"-co", "T"}), "TILED=")); // the format of a dst without an extension
}

TEST(Completion, OffersValuesOfACreationOption) {
    EXPECT_EQ(next({"-of", "GTiff", "-co", "TILED="}), (Words{"TILED=NO", "TILED=YES"}));
    EXPECT_EQ(next({"-of", "GTiff", "-co", "tiled=y"}), (Words{"TILED=YES"}));
    EXPECT_TRUE(has(next({"-of", "ENVI", "-co", "INTERLEAVE=b"}), "INTERLEAVE=BSQ"));
    EXPECT_EQ(next({"-of", "GTiff", "-co", "NO_SUCH="}), Words{});
}

TEST(Completion, KnowsWhichOutputAnOptionIsAbout) {
    EXPECT_TRUE(has(next_of_points({"-of", "GPKG", "-lco", "GEOM"}), "GEOMETRY_NAME="));
    EXPECT_TRUE(has(next_of_points({"a.img", "b.gpkg", "-lco", "GEOM"}), "GEOMETRY_NAME="));
    EXPECT_TRUE(has(next_of_points({"a.img", "b.csv", "-lco", "GEOM"}), "GEOMETRY="));
    // -of refers to the points, -co to the raster
    EXPECT_FALSE(has(next_of_points({"-of", "GPKG", "-alpha", "a.dat", "-co", ""}), "TILED="));
    EXPECT_TRUE(has(next_of_points({"-of", "GPKG", "-alpha", "a.tif", "-co", ""}), "TILED="));
}

TEST(Completion, OffersOpenOptionsOfTheDriverThatIsNamed) {
    EXPECT_TRUE(has(next({"-if", "GTiff", "-oo", "NUM"}), "NUM_THREADS="));
    EXPECT_EQ(next({"-oo", ""}), Words{});
}

} // namespace
} // namespace hsi::terminal
