// SPDX-License-Identifier: MIT
// Help, tables and manual pages match the definition.
#include "terminal/help.h"
#include "terminal/man_page.h"

#include <gtest/gtest.h>

#include <array>

namespace hsi::terminal {
namespace {

struct Settings {
    int window = 5;
    double limit = 0.5, angle = 180;
    std::vector<double> list;
    std::array<int64_t, 2> size{0, 0};
    std::string kind = "fed", method = "osp";
    bool plain = false;
    std::string file;
};

const tool::Definition definition{
    "frame",
    "A frame (FR)",
    "Frames a scene, with -plain without ornament.",
    {{"gdal_hsi_frame a.img b.tif", ""}, {"gdal_hsi_frame -plain a.img b.tif", "Without ornament"}},
    ".a note that begins with a dot",
    [](tool::Builder& args) {
        auto& s = args.settings<Settings>();
        args.add_source();
        args.add_destination();
        args.option("ws", s.window, "Window size").between(3, 63).in_unit("pixels");
        args.option("limit", s.limit, "Limit of |p.x| without -plain").above(0);
        args.option("max-angle", s.angle, "Greatest angle").in_unit("degrees").shown_as("DEGREES");
        args.option("list", s.list, "Numbers").in_unit("metres");
        args.option("size", s.size, "Size").shown_as("X Y").required = true;
        args.choice<std::string>("kind", s.kind, "Kind",
                                 {{"fed", "fed", "fast"}, {"exact", "exact", "slow, like -limit 0"}});
        args.choice<std::string>("method", s.method, "Method", {{"osp", "osp"}, {"gs", "gs"}});
        args.flag("plain", s.plain, "Without ornament");
        args.output("map", s.file, tool::Content::raster, "Also write a map to FILE");
        args.exclusive("plain", "kind");
        args.exclusive("limit", "plain");
    }};

std::string description(const std::string& option) {
    const tool::Declaration declaration(definition);
    return option_description(declaration, *declaration.find(option));
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(OptionDescription, TellsWhatTheDefinitionKnows) {
    EXPECT_EQ(description("ws"), "Window size (3 to 63 pixels) [5]");
    EXPECT_EQ(description("limit"), "Limit of |p.x| without -plain (above 0; not with -plain) [0.5]");
    EXPECT_EQ(description("max-angle"), "Greatest angle [180]"); // DEGREES already states the unit
    EXPECT_EQ(description("list"), "Numbers (in metres; may be repeated)");
    EXPECT_EQ(description("size"), "Size (required)");
    EXPECT_EQ(description("kind"), "Kind. fed: fast; exact: slow, like -limit 0 (not with -plain) [fed]");
    EXPECT_EQ(description("method"), "Method [osp]");
    EXPECT_EQ(description("plain"), "Without ornament (not with -kind or -limit)");
}

TEST(OptionTable, IsMarkdown) {
    const tool::Declaration declaration(definition);
    const std::string table = option_table(declaration);
    EXPECT_TRUE(holds(table, "| `src` | The scene: any raster that GDAL opens, or a MATLAB file (.mat) |\n"))
        << table;
    EXPECT_TRUE(holds(table, "| `-ws N` | Window size (3 to 63 pixels) | 5 |\n")) << table;
    EXPECT_TRUE(holds(
        table, "| `-limit V` | Limit of \\|p.x\\| without `-plain` (above 0; not with `-plain`) | 0.5 |\n"))
        << table;
    EXPECT_TRUE(holds(table, "| `-method osp\\|gs` | Method | osp |\n")) << table;
    EXPECT_TRUE(holds(table, "| `-plain` | Without ornament (not with `-kind` or `-limit`) | |\n")) << table;
    EXPECT_TRUE(holds(table, "[shared options](options.md): `-b`, ")) << table;
    EXPECT_FALSE(holds(table, "| `-srcwin")) << table;
}

TEST(OptionTable, OfSharedOptionsHasThemAll) {
    const std::string table = shared_option_table();
    for (const char* const part :
         {"### Input\n", "### Output\n", "### Computing\n", "### General\n", "| `-b LIST` |",
          "| `-of FORMAT` |", "| `-memory SIZE` |", "| `-q, -quiet` |", "| `--version` |"})
        EXPECT_TRUE(holds(table, part)) << part;
}

TEST(Help, ShowsExamplesWithTheirPurpose) {
    const tool::Declaration declaration(definition);
    EXPECT_TRUE(holds(help_text(declaration),
                      "Examples:\n  gdal_hsi_frame a.img b.tif\n  # Without ornament\n"
                      "  gdal_hsi_frame -plain a.img b.tif\n"))
        << help_text(declaration);
}

TEST(ManPage, MarksOptionsAndListsChoices) {
    const tool::Declaration declaration(definition);
    const std::string page = man_page(declaration);
    EXPECT_TRUE(holds(page, ".SH NAME\ngdal_hsi_frame \\- A frame (FR)\n")) << page;
    EXPECT_TRUE(holds(page, "Frames a scene, with \\fB\\-plain\\fR without ornament.\n")) << page;
    EXPECT_TRUE(holds(page, "\n\\&.a note that begins with a dot\n")) << page;
    EXPECT_TRUE(
        holds(page, ".TP\n\\fB\\-kind\\fR \\fBfed\\fR|\\fBexact\\fR\nKind (not with \\fB\\-plain\\fR) [fed]\n"
                    ".RS\n.TP\n\\fBfed\\fR\nfast\n"))
        << page;
    EXPECT_TRUE(holds(page, "\\fB\\-map\\fR \\fIFILE\\fR\n")) << page;
}

TEST(ManPage, OfTheSuiteNamesTheTools) {
    const std::string page = suite_man_page({&definition});
    EXPECT_TRUE(holds(page, ".BR gdal_hsi_frame (1)\nA frame (FR)\n")) << page;
}

} // namespace
} // namespace hsi::terminal
