// SPDX-License-Identifier: MIT
#include "core/json.h"
#include "terminal/terminal.h"

#include "terminal/process.h"

#include "core/error.h"
#include "core/host_memory.h"
#include "core/process_limits.h"
#include "support/memory_cube.h"
#include "tool/memory_plan.h"
#include "tool/words.h"
#include "tool/workers.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_progress.h>
#include <gdal.h>

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <sstream>
#include <stdexcept>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

namespace hsi::terminal {
namespace {

using tool::CommonOptions;
using tool::parse_band_list;

using ToolRun = tool::Run;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

struct Outcome {
    int code = -1;
    bool ran = false;
    std::string out, err;
    CommonOptions options;
    int window = 5;
    std::vector<int> times;
};

/// Calls a tool with all shared options, an option with limits and an option with a list.
Outcome call(Words words, const std::function<void(ToolRun&)>& body = {},
             const std::function<void(const CommonOptions&)>& checker = {}) {
    Outcome outcome;
    std::string method = "osp";
    double limit = 0;
    int kind = 0;
    const std::function<void(tool::Builder&)> declare = [&](tool::Builder& args) {
        args.add_source();
        args.add_destination();
        args.add_compute();
        args.option("ws", outcome.window, "window size").between(3, 63);
        args.option("times", outcome.times, "times");
        args.choice<std::string>("method", method, "a name", {{"osp", "osp"}, {"gs", "gs"}});
        args.option("limit", limit, "a limit").from(0);
        args.choice("kind", kind, "a name that stands for a number", {{"fed", 0}, {"exact", 1}, {"fine", 2}});
        if (checker) args.check(checker);
        args.body([&](ToolRun& run) {
            outcome.ran = true;
            outcome.options = run.options();
            if (body) body(run);
        });
    };
    static const std::function<void(tool::Builder&)>* declares;
    declares = &declare;
    const tool::Definition definition{"frame",
                                      "A frame",
                                      "A tool that shows its frame.",
                                      {{"gdal_hsi_frame a b", ""}},
                                      "",
                                      [](tool::Builder& args) { (*declares)(args); }};
    words.insert(words.begin(), "/some/where/gdal_hsi_frame");
    std::vector<char*> argv;
    for (auto& word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    outcome.code = run_in_terminal(definition, static_cast<int>(words.size()), argv.data());
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.err = testing::internal::GetCapturedStderr();
    return outcome;
}

CommonOptions parsed(const Words& words) {
    Words all = words;
    all.insert(all.end(), {"a.img", "b.tif"});
    const Outcome outcome = call(all);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.ran);
    return outcome.options;
}

class Folder {
  public:
    Folder() : m_path(fs::path(testing::TempDir()) / ("hsi_frame_" + std::to_string(getpid()))) {
        fs::remove_all(m_path);
        fs::create_directory(m_path);
    }
    ~Folder() { fs::remove_all(m_path); }
    std::string file(const std::string& name) const { return (m_path / name).string(); }
    size_t count() const {
        return static_cast<size_t>(std::distance(fs::directory_iterator(m_path), fs::directory_iterator()));
    }

  private:
    fs::path m_path;
};

Json read_json(const std::string& path) {
    std::ifstream file(path);
    return Json::parse(file);
}

TEST(Options, HaveDefaults) {
    const CommonOptions o = parsed({});
    EXPECT_EQ(o.source.path, "a.img");
    EXPECT_EQ(o.destination.path, "b.tif");
    EXPECT_TRUE(o.source.bands.empty());
    EXPECT_TRUE(o.source.use_bbl);
    EXPECT_FALSE(o.source.window || o.source.nodata || o.destination.nodata);
    EXPECT_EQ(o.destination.format, "");
    EXPECT_EQ(o.destination.type, "");
    EXPECT_FALSE(o.destination.overwrite || o.dry_run || o.quiet);
    EXPECT_EQ(o.device.kind, DeviceChoice::Kind::automatic);
    EXPECT_EQ(o.memory, usable_ram() / 4);
    EXPECT_EQ(o.device_memory, 0u);
    EXPECT_EQ(o.threads, usable_processors());
    EXPECT_EQ(o.tile_samples, 0);
}

TEST(Options, TheNumberOfThreadsIsGdalsOwnUnlessGiven) {
    EXPECT_EQ(parsed({"--config", "GDAL_NUM_THREADS", "7"}).threads, 7);
    EXPECT_EQ(parsed({"--config", "GDAL_NUM_THREADS", "0"}).threads, 1);
    EXPECT_EQ(parsed({"--config", "GDAL_NUM_THREADS", "all_cpus"}).threads, usable_processors());
    EXPECT_EQ(parsed({"--config", "GDAL_NUM_THREADS", "7", "-threads", "3"}).threads, 3);
    EXPECT_EQ(parsed({"--config", "GDAL_NUM_THREADS", "7", "-threads", "ALL_CPUS"}).threads,
              usable_processors());
    CPLSetConfigOption("GDAL_NUM_THREADS", "many");
    EXPECT_THROW(tool::thread_count("ALL_CPUS", false, 1), UsageError);
    CPLSetConfigOption("GDAL_NUM_THREADS", "-2");
    EXPECT_THROW(tool::thread_count("ALL_CPUS", false, 1), UsageError);
    CPLSetConfigOption("GDAL_NUM_THREADS", "100000");
    EXPECT_EQ(tool::thread_count("ALL_CPUS", false, 1), tool::most_threads);
    CPLSetConfigOption("GDAL_NUM_THREADS", "100");
    EXPECT_EQ(tool::thread_count("ALL_CPUS", false, 8), 12);
    CPLSetConfigOption("GDAL_NUM_THREADS", nullptr);
}

TEST(Options, AreRead) {
    const CommonOptions o =
        parsed({"-of",     "ENVI",       "-co",     "A=1",      "--co",       "B=2=3",  "-ot",
                "float64", "-oo",        "C=4",     "-if",      "GTiff",      "-if",    "ENVI",
                "-b",      "1-3,9",      "-b",      "5",        "-bbl",       "ignore", "-srcwin",
                "0",       "1",          "20",      "30",       "-srcnodata", "-9999",  "-dstnodata",
                "nan",     "-overwrite", "-device", "cuda:1,0", "-memory",    "64MB",   "-device-memory",
                "2GB",     "-threads",   "3",       "-tile",    "64",         "32",     "-dry-run",
                "-q"});
    EXPECT_EQ(o.destination.format, "ENVI");
    EXPECT_EQ(o.destination.creation_options, (Words{"A=1", "B=2=3"}));
    EXPECT_EQ(o.destination.type, "Float64");
    EXPECT_EQ(o.source.open_options, Words{"C=4"});
    EXPECT_EQ(o.source.drivers, (Words{"GTiff", "ENVI"}));
    EXPECT_EQ(o.source.bands, (std::vector<int>{1, 2, 3, 9, 5}));
    EXPECT_FALSE(o.source.use_bbl);
    EXPECT_EQ(o.source.window.value(), (Rect{0, 1, 20, 30}));
    EXPECT_EQ(o.source.nodata, -9999.0);
    EXPECT_TRUE(std::isnan(o.destination.nodata.value()));
    EXPECT_EQ(o.device.kind, DeviceChoice::Kind::cuda);
    EXPECT_EQ(o.device.devices, (std::vector<int>{1, 0}));
    EXPECT_EQ(o.memory, uint64_t{64} << 20);
    EXPECT_EQ(o.device_memory, uint64_t{2} << 30);
    EXPECT_EQ(o.threads, 3);
    EXPECT_EQ(o.tile_samples, 64);
    EXPECT_EQ(o.tile_lines, 32);
    EXPECT_TRUE(o.destination.overwrite && o.dry_run && o.quiet);
}

TEST(Options, MayFollowTheArguments) {
    const Outcome outcome = call({"a.img", "-b", "1", "b.tif", "-times", "1,2", "--ws", "7"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.options.source.path, "a.img");
    EXPECT_EQ(outcome.options.destination.path, "b.tif");
    EXPECT_EQ(outcome.window, 7);
    EXPECT_EQ(outcome.times, (std::vector<int>{1, 2}));
}

TEST(Options, ListsDoNotSwallowArguments) {
    const Outcome outcome = call({"-times", "1,2", "-co", "A=1", "a.img", "b.tif"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.times, (std::vector<int>{1, 2}));
    EXPECT_EQ(outcome.options.source.path, "a.img");
}

TEST(Options, TakeFilesThatLookLikeOptionsAfterTwoDashes) {
    const Outcome outcome = call({"-q", "--", "-of", "--ws"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.options.source.path, "-of");
    EXPECT_EQ(outcome.options.destination.path, "--ws");
}

struct Wrong {
    Words words;
    std::string first_line; ///< of stderr, after "ERROR: "
};
/// Prints the test's parameter. The bytes of the struct would differ from run to run.
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.first_line; }
class WrongCommandLine : public testing::TestWithParam<Wrong> {};

TEST_P(WrongCommandLine, EndsWithTwoAndNamesTheOption) {
    const Outcome outcome = call(GetParam().words);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_FALSE(outcome.ran);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.substr(0, outcome.err.find('\n')), "ERROR: " + GetParam().first_line);
    EXPECT_NE(outcome.err.find("Run 'gdal_hsi_frame --help' for all options.\n"), std::string::npos)
        << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongCommandLine,
    testing::ValuesIn(std::vector<Wrong>{
        Wrong{{}, "src is missing"},
        Wrong{{"a"}, "dst is missing"},
        Wrong{{"a", "b", "c"}, "unexpected argument: c"},
        Wrong{{"", "b"}, "src is empty"},
        Wrong{{"a", ""}, "dst is empty"},
        Wrong{{"a", "b", "-nosuch"}, "unknown option '-nosuch'"},
        Wrong{{"a", "b", "-ws", "65"}, "-ws: '65' is not a whole number from 3 to 63"},
        Wrong{{"a", "b", "--ws", "five"}, "-ws: 'five' is not a whole number from 3 to 63"},
        Wrong{{"a", "b", "-times", "1,x"}, "-times: 'x' is not a whole number"},
        Wrong{{"a", "b", "-method", "pca"}, "-method: 'pca' is not osp or gs"},
        Wrong{{"a", "b", "-limit", "-1"}, "-limit: '-1' is not a number from 0 on"},
        Wrong{{"a", "b", "-limit", "x"}, "-limit: 'x' is not a number from 0 on"},
        Wrong{{"a", "b", "-kind", "slow"}, "-kind: 'slow' is not one of fed, exact, fine"},
        Wrong{{"a", "b", "-ws"}, "-ws: its value is missing"},
        Wrong{{"a", "b", "-of", "GTiff", "-of", "ENVI"}, "-of is given 2 times"},
        Wrong{{"a", "b", "-co", "TILED"}, "-co: 'TILED' is not NAME=VALUE"},
        Wrong{{"a", "b", "-oo", "=1"}, "-oo: '=1' is not NAME=VALUE"},
        Wrong{{"a", "b", "-ot", "CFloat32"}, "-ot: 'CFloat32' is not a pixel type for real numbers"},
        Wrong{{"a", "b", "-ot", "Float16"}, "-ot: 'Float16' is not a pixel type for real numbers"},
        Wrong{{"a", "b", "-b", "0"}, "-b: '0' is not a band or a range of bands"},
        Wrong{{"a", "b", "-b", "5-3"}, "-b: '5-3' is not a band or a range of bands"},
        Wrong{{"a", "b", "-b", "1-999999999"}, "-b: '1-999999999' is not a band or a range of bands"},
        Wrong{{"a", "b", "-b", "1,,2"}, "-b: '1,,2' is not a list of bands"},
        Wrong{{"a", "b", "-b", "1-4,3"}, "-b: band 3 is named twice"},
        Wrong{{"a", "b", "-bbl", "maybe"}, "-bbl: 'maybe' is not one of use, ignore, FILE.csv"},
        Wrong{{"a", "b", "-srcwin", "0", "0", "0", "5"},
              "-srcwin: '0' is not a size: a whole number from 1 on"},
        Wrong{{"a", "b", "-srcwin", "-1", "0", "5", "5"},
              "-srcwin: '-1' is not an offset: a whole number from 0 on"},
        Wrong{{"a", "b", "-srcwin", "1", "0"}, "-srcwin: 4 values are needed, but 2 were given"},
        Wrong{{"a", "b", "-srcnodata", "none"}, "-srcnodata: 'none' is not a number"},
        Wrong{{"a", "b", "-dstnodata", "1,5"}, "-dstnodata: '1,5' is not a number"},
        Wrong{{"a", "b", "-device", "gpu"}, "-device: 'gpu' is not a device"},
        Wrong{{"a", "b", "-memory", "0"}, "-memory: '0' is not a memory size"},
        Wrong{{"a", "b", "-device-memory", "80%"}, "-device-memory: '80%' is not a memory size"},
        Wrong{{"a", "b", "-threads", "0"}, "-threads: '0' is not ALL_CPUS or a whole number from 1 to 1024"},
        Wrong{{"a", "b", "-tile", "8", "0"}, "-tile: '0' is not a tile size: a whole number from 1 on"},
        Wrong{{"a", "b", "-report", "b"}, "-report and dst name the same file, 'b'"},
        Wrong{{"a", "b", "-report", "a"}, "-report 'a' would overwrite src"},
        Wrong{{"a", "b", "--config"}, "--config: KEY and VALUE are missing"}}));

TEST(Checker, RunsBeforeTheBody) {
    const Outcome outcome = call({"a", "b"}, {}, [](const CommonOptions& o) {
        EXPECT_EQ(o.source.path, "a");
        throw UsageError("-nc and -no-pca exclude one another", "Leave one out.");
    });
    EXPECT_EQ(outcome.code, 2);
    EXPECT_FALSE(outcome.ran);
    EXPECT_EQ(outcome.err, "ERROR: -nc and -no-pca exclude one another\n"
                           "Leave one out. Run 'gdal_hsi_frame --help' for all options.\n");
}

TEST(Failures, BecomeExitCodes) {
    Outcome o = call({"a", "b"}, [](ToolRun&) { throw Error("it\nbroke", "Mend it."); });
    EXPECT_EQ(o.code, 1);
    EXPECT_EQ(o.err, "ERROR: it broke\nMend it.\n");
    o = call({"a", "b"}, [](ToolRun&) { throw UsageError("-b: there is no band 7"); });
    EXPECT_EQ(o.code, 2);
    EXPECT_EQ(o.err, "ERROR: -b: there is no band 7\nRun 'gdal_hsi_frame --help' for all options.\n");
    o = call({"a", "b"}, [](ToolRun&) { throw std::bad_alloc(); });
    EXPECT_EQ(o.code, 1);
    EXPECT_EQ(o.err.rfind("ERROR: out of memory\n", 0), 0u) << o.err;
    o = call({"a", "b"}, [](ToolRun&) { throw std::logic_error("odd"); });
    EXPECT_EQ(o.code, 1);
    EXPECT_EQ(o.err, "ERROR: odd\n");
    o = call({"a", "b"}, [](ToolRun&) { throw 7; });
    EXPECT_EQ(o.code, 1);
    EXPECT_EQ(o.err, "ERROR: an unknown error\n");
}

TEST(General, HelpNamesEveryOption) {
    for (const Words& words : {Words{"--help"}, Words{"-h"}, Words{"a", "-ws", "1", "-h"}}) {
        const Outcome outcome = call(words);
        EXPECT_EQ(outcome.code, 0);
        EXPECT_FALSE(outcome.ran);
        EXPECT_EQ(outcome.err, "");
        EXPECT_EQ(outcome.out.rfind("Usage: gdal_hsi_frame [options] src dst\n", 0), 0u) << outcome.out;
        for (const char* option :
             {"-of",      "-co",        "-oo",        "-if",        "-ot",       "-b",      "-bbl",
              "-srcwin",  "-srcnodata", "-dstnodata", "-overwrite", "-device",   "-memory", "-device-memory",
              "-threads", "-tile",      "-report",    "-dry-run",   "-q",        "-ws",     "-times",
              "-h",       "--version",  "--formats",  "--config",   "--optfile", "--debug", "--help-general"})
            EXPECT_TRUE(outcome.out.find(std::string("\n  ") + option + " ") != std::string::npos ||
                        outcome.out.find(std::string("\n  ") + option + ",") != std::string::npos)
                << option << "\n"
                << outcome.out;
        EXPECT_NE(outcome.out.find("window size (3 to 63) [5]"), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("a limit (from 0 on)"), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("\n  -method osp|gs "), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("\n  -kind fed|exact|fine "), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("Examples:"), std::string::npos);
        std::istringstream lines(outcome.out);
        for (std::string line; std::getline(lines, line);)
            EXPECT_LE(line.size(), 100u) << line;
    }
}

TEST(General, VersionNamesGdal) {
    const Outcome outcome = call({"--version"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out.rfind("gdal_hsi_frame ", 0), 0u);
    EXPECT_NE(outcome.out.find(std::string(", GDAL ") + GDALVersionInfo("RELEASE_NAME") + "\n"),
              std::string::npos);
}

TEST(General, FormatsAreGdals) {
    const Outcome all = call({"--formats"});
    EXPECT_EQ(all.code, 0);
    EXPECT_NE(all.out.find("GTiff -raster-"), std::string::npos) << all.out;
    const Outcome one = call({"--format", "ENVI"});
    EXPECT_EQ(one.code, 0);
    EXPECT_NE(one.out.find("Short Name: ENVI"), std::string::npos) << one.out;
    const Outcome none = call({"--format", "NoSuchFormat"});
    EXPECT_EQ(none.code, 2);
    EXPECT_EQ(none.out, "");
    EXPECT_EQ(none.err.rfind("ERROR: ", 0), 0u) << none.err;
    EXPECT_NE(none.err.find("NoSuchFormat"), std::string::npos) << none.err;
    const Outcome general = call({"--help-general"});
    EXPECT_EQ(general.code, 0);
    EXPECT_NE(general.out.find("--optfile"), std::string::npos) << general.out;
}

TEST(General, ConfigurationReachesGdal) {
    const Outcome outcome =
        call({"--config", "HSI_ONE", "1", "a", "b", "--config", "HSI_TWO=2"}, [](ToolRun&) {
            EXPECT_STREQ(CPLGetConfigOption("HSI_ONE", ""), "1");
            EXPECT_STREQ(CPLGetConfigOption("HSI_TWO", ""), "2");
        });
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.ran);
    CPLSetConfigOption("HSI_ONE", nullptr);
    CPLSetConfigOption("HSI_TWO", nullptr);
}

TEST(General, OptionFilesHoldOptions) {
    const Folder folder;
    std::ofstream(folder.file("options")) << "-ws 9\n--config HSI_FILE 3\n";
    const Outcome outcome = call({"a", "b", "--optfile", folder.file("options")},
                                 [](ToolRun&) { EXPECT_STREQ(CPLGetConfigOption("HSI_FILE", ""), "3"); });
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.window, 9);
    CPLSetConfigOption("HSI_FILE", nullptr);
}

TEST(Messages, GdalsOwnFollowTheError) {
    const Outcome outcome = call({"a", "b"}, [](ToolRun&) {
        CPLError(CE_Failure, CPLE_AppDefined, "block 3 is damaged");
        CPLError(CE_Failure, CPLE_AppDefined, "already told");
        throw Error("cannot read a: already told");
    });
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "ERROR: cannot read a: already told\nGDAL: block 3 is damaged\n");
}

TEST(Messages, GdalsWarningsComeOnceFromEveryThread) {
    const Outcome outcome = call({"a", "b"}, [](ToolRun&) {
        std::thread([] { CPLError(CE_Warning, CPLE_AppDefined, "old file"); }).join();
        CPLError(CE_Warning, CPLE_AppDefined, "old file");
        CPLError(CE_Failure, CPLE_AppDefined, "went on");
    });
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "Warning: old file\nWarning: GDAL: went on\n");
}

TEST(Messages, NotesAreQuietAndResultsAreNot) {
    const auto body = [](ToolRun& run) {
        run.note("a note");
        run.print("a result");
        run.warn("a warning");
    };
    Outcome o = call({"a", "b"}, body);
    EXPECT_EQ(o.out, "a note\na result\n");
    EXPECT_EQ(o.err, "Warning: a warning\n");
    o = call({"a", "b", "-q"}, body);
    EXPECT_EQ(o.out, "a result\n");
    EXPECT_EQ(o.err, "Warning: a warning\n");
    o = call({"a", "/vsistdout/"}, body);
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(o.err, "a result\nWarning: a warning\n");
}

/// GDAL owns the bar's state, which outlives a run that did not reach its end.
struct Progress : testing::Test {
    Progress() {
        testing::internal::CaptureStdout();
        GDALTermProgress(1.0, nullptr, nullptr);
        testing::internal::GetCapturedStdout();
    }
};

TEST_F(Progress, PassesShareTheBar) {
    const auto body = [](ToolRun& run) {
        const auto first = run.pass("one", 0.3), second = run.pass("two", 0.7);
        for (const auto* pass : {&first, &second})
            for (int i = 0; i <= 10; ++i)
                pass->progress(i / 10.0);
    };
    EXPECT_EQ(call({"a", "b"}, body).out, "0...10...20...30...40...50...60...70...80...90...100 - done.\n");
    EXPECT_EQ(call({"a", "b", "-q"}, body).out, "");
    EXPECT_EQ(call({"a", "b", "-dry-run"}, body).out, "");
    EXPECT_EQ(call({"a", "/vsistdout/"}, body).out, "");
}

TEST_F(Progress, EndsItsLineBeforeAnErrorAndANote) {
    const Outcome outcome = call({"a", "b"}, [](ToolRun& run) {
        run.pass("one", 1).progress(0.25);
        run.note("half way");
        throw Error("broken");
    });
    EXPECT_EQ(outcome.out, "0...10...20..\nhalf way\n");
}

TEST_F(Progress, ReachesTheEndWhenSharesDoNotAddUp) {
    const Outcome outcome = call({"a", "b"}, [](ToolRun& run) {
        run.pass("one", 0.5).progress(1);
        run.pass("one", 0.5).progress(1);
        run.pass("two", 0.5).progress(1);
    });
    EXPECT_EQ(outcome.out, "0...10...20...30...40...50...60...70...80...90...100 - done.\n");
    EXPECT_EQ(call({"a", "b"}, [](ToolRun& run) { run.pass("one", 0.5).progress(1); }).out,
              "0...10...20...30...40...50...60...70...80...90...100 - done.\n");
}

TEST(Memory, IsSharedWithGdalsCache) {
    const Outcome outcome =
        call({"a", "b", "-memory", "400MB", "-threads", "3", "-tile", "8", "4"}, [](ToolRun& run) {
            constexpr uint64_t mb = uint64_t{1} << 20;
            const auto cache = [] { return static_cast<uint64_t>(GDALGetCacheMax64()); };
            EXPECT_EQ(run.buffer_memory() + cache(), 400 * mb);
            run.reserve_cache(50 * mb);
            EXPECT_EQ(cache(), 50 * mb);
            EXPECT_EQ(run.buffer_memory(), 350 * mb);
            run.reserve_cache(1000 * mb);
            EXPECT_EQ(cache(), 100 * mb);
            // Memory above the cache is in use elsewhere: up to half of -memory stays free for it.
            EXPECT_EQ(run.buffer_memory(), 200 * mb);
            const auto pass = run.pass("p", 1);
            EXPECT_EQ(pass.memory, 200 * mb);
            EXPECT_EQ(pass.lanes, 3);
            EXPECT_EQ(pass.tile_samples, 8);
            EXPECT_EQ(pass.tile_lines, 4);
            EXPECT_EQ(pass.cancel, &run.cancel());
        });
    EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(Memory, TooLittleIsAnErrorThatNamesTheOption) {
    const Outcome outcome = call({"a", "b", "-memory", "50kB"}, [](ToolRun& run) { run.pass("p", 1); });
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err.rfind("ERROR: -memory: 50 kB leaves no room for tile buffers\n", 0), 0u)
        << outcome.err;
}

TEST(SideOutput, FollowsTheDestination) {
    call({"a", "b.img", "-of", "ENVI", "-co", "X=1", "-ot", "Int16", "-overwrite", "-dstnodata", "-1"},
         [](ToolRun& run) {
             const auto alike = run.side_output("-alpha", "alpha.img");
             EXPECT_EQ(alike.path, "alpha.img");
             EXPECT_EQ(alike.format, "ENVI");
             EXPECT_EQ(alike.creation_options, Words{"X=1"});
             EXPECT_EQ(alike.type, "");
             EXPECT_TRUE(alike.overwrite);
             EXPECT_EQ(alike.nodata, -1.0);
             EXPECT_EQ(alike.history, run.options().destination.history);
             const auto other = run.side_output("-alpha", "alpha.tif");
             EXPECT_EQ(other.format, "");
             EXPECT_TRUE(other.creation_options.empty());
             EXPECT_EQ(run.side_output("-alpha", "alpha").format, "ENVI");
             EXPECT_EQ(other.role, "-alpha");
             EXPECT_EQ(other.run, run.files());
         });
}

TEST(History, IsTheCommandLine) {
    const Outcome outcome = call({"-ws", "7", "a b.img", "b.tif"});
    EXPECT_EQ(outcome.options.destination.history, "gdal_hsi_frame -ws 7 'a b.img' b.tif");
}

/// Sets signals as in a process that just began. An earlier run that succeeded, in this process or in its
/// parent, may have left them ignored; a guard restores them.
struct Signals : testing::Test {
    Signals() {
        CancelFlag flag;
        { const SignalGuard guard(flag, false); }
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU})
            signal(number, SIG_DFL);
    }
};
using SignalsDeathTest = Signals;

TEST_F(Signals, CancelAndLeaveTheOldHandlers) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU}) {
        struct sigaction before {};
        sigaction(number, nullptr, &before);
        const Outcome outcome = call({"a", "b"}, [&](ToolRun& run) {
            run.pass("p", 1).progress(0.5);
            EXPECT_FALSE(run.cancel().requested());
            raise(number);
            EXPECT_TRUE(run.cancel().requested());
            throw Cancelled();
        });
        EXPECT_EQ(outcome.code, 1);
        EXPECT_EQ(outcome.err, "ERROR: interrupted\nNo output was written.\n");
        struct sigaction after {};
        sigaction(number, nullptr, &after);
        EXPECT_EQ(after.sa_handler, before.sa_handler);
    }
}

TEST_F(Signals, AnErrorAfterASignalIsItsEcho) {
    const Outcome outcome = call({"a", "b"}, [](ToolRun&) {
        raise(SIGTERM);
        throw Error("read failed");
    });
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.err, "ERROR: interrupted\nNo output was written.\n");
}

TEST_F(Signals, IgnoredOnesStayIgnored) {
    struct sigaction old {
    }, ignore{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGHUP, &ignore, &old);
    const Outcome outcome = call({"a", "b"}, [](ToolRun& run) {
        raise(SIGHUP);
        EXPECT_FALSE(run.cancel().requested());
    });
    sigaction(SIGHUP, &old, nullptr);
    EXPECT_EQ(outcome.code, 0);
}

TEST_F(SignalsDeathTest, TheSecondOneKills) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(call({"a", "b"},
                     [](ToolRun&) {
                         raise(SIGINT);
                         raise(SIGTERM);
                     }),
                testing::KilledBySignal(SIGTERM), "");
}

/// Reads a small cube in the pipeline with the run's pass options.
void scan(ToolRun& run) {
    class Count final : public stream::Operation {
        class Nothing final : public stream::Worker {
            void process(const Tile&, const CubeView<float>&, const std::vector<CubeView<float>>&) override {}
        };
        std::unique_ptr<stream::Worker> start(int, const stream::TileLimits&) override {
            return std::make_unique<Nothing>();
        }
    } count;
    const test::Cube cube(16, 16, 3, 1.0f);
    run.add_pass(stream::run_pass(test::MemorySource(cube), count, {}, run.pass("scan", 1)));
}

TEST(Report, TellsTheRun) {
    const Folder folder;
    const std::string file = folder.file("run.json");
    const Outcome outcome =
        call({"a", "b", "-tile", "8", "8", "-threads", "2", "-srcnodata", "nan", "-b", "2", "-report", file},
             [](ToolRun& run) {
                 run.report()["device"] = "CPU";
                 run.warn("careful");
                 scan(run);
             });
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(folder.count(), 1u);
    const auto report = read_json(file);
    EXPECT_EQ(report["tool"], "gdal_hsi_frame");
    EXPECT_EQ(report["gdal"], GDALVersionInfo("RELEASE_NAME"));
    EXPECT_FALSE(report["version"].get<std::string>().empty());
    EXPECT_EQ(report["command"].get<std::string>().rfind("gdal_hsi_frame a b -tile 8 8", 0), 0u);
    EXPECT_EQ(report["started"].get<std::string>().size(), 20u);
    EXPECT_EQ(report["device"], "CPU");
    const auto& options = report["options"];
    EXPECT_EQ(options["tile"], Json({8, 8}));
    EXPECT_EQ(options["threads"], 2);
    EXPECT_EQ(options["srcnodata"], "nan");
    EXPECT_EQ(options["b"], Json({2}));
    EXPECT_EQ(options["ws"], "5");
    EXPECT_TRUE(options["srcwin"].is_null());
    EXPECT_EQ(options["memory"], usable_ram() / 4);
    ASSERT_EQ(report["passes"].size(), 1u);
    EXPECT_EQ(report["passes"][0]["name"], "scan");
    EXPECT_EQ(report["passes"][0]["tiles"], 4);
    EXPECT_EQ(report["passes"][0]["bytes_read"], 16 * 16 * 3 * 4);
    EXPECT_EQ(report["totals"]["bytes_read"], 16 * 16 * 3 * 4);
    EXPECT_EQ(report["warnings"], Json({"careful"}));
    EXPECT_GT(report["peak_resident_bytes"], 1 << 20);
    EXPECT_GE(report["seconds"], report["passes"][0]["seconds"]);
    EXPECT_FALSE(report.contains("error"));
}

TEST(Report, TellsAFailure) {
    const Folder folder;
    const std::string file = folder.file("run.json");
    std::ofstream(file) << R"({"tool": "gdal_hsi_pca", "version": "0.1.0", "passes": []})";
    const Outcome outcome = call({"a", "b", "-report", file},
                                 [](ToolRun&) { throw Error("bytes \xff are wrong", "Mend them."); });
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(folder.count(), 1u);
    const auto report = read_json(file);
    EXPECT_EQ(report["error"]["advice"], "Mend them.");
    EXPECT_EQ(report["error"]["exit_code"], 1);
    EXPECT_EQ(report["error"]["message"].get<std::string>().rfind("bytes ", 0), 0u);
}

TEST(Report, ReplacesReportsAndNothingElse) {
    const Folder folder;
    const std::string file = folder.file("notes.json");
    std::ofstream(file) << "{\"notes\": 1}";
    EXPECT_EQ(call({"a", "b", "-report", file}).code, 1);
    EXPECT_EQ(read_json(file)["notes"], 1);
    EXPECT_EQ(call({"a", "b", "-report", file, "-overwrite"}).code, 0);
    EXPECT_EQ(read_json(file)["tool"], "gdal_hsi_frame");
    EXPECT_EQ(call({"a", "b", "-report", file}).code, 0) << "a report of an earlier run";
}

TEST(Report, ThatCannotBeWrittenIsFoundBeforeTheWork) {
    const Folder folder;
    for (const std::string& file :
         {folder.file("no/such/run.json"), folder.file("."), std::string("/proc/run.json")}) {
        const Outcome outcome = call({"a", "b", "-report", file});
        EXPECT_EQ(outcome.code, 1) << file;
        EXPECT_FALSE(outcome.ran);
        EXPECT_EQ(outcome.err.rfind("ERROR: cannot write '" + file + "' (-report)", 0), 0u) << outcome.err;
    }
    EXPECT_EQ(folder.count(), 0u);
}

TEST(ParseBandList, KeepsTheOrder) {
    EXPECT_EQ(parse_band_list({"7,1-3", "5"}), (std::vector<int>{7, 1, 2, 3, 5}));
    EXPECT_TRUE(parse_band_list({}).empty());
    EXPECT_THROW(parse_band_list({""}), UsageError);
    EXPECT_THROW(parse_band_list({"1-"}), UsageError);
    EXPECT_THROW(parse_band_list({"-1"}), UsageError);
    EXPECT_THROW(parse_band_list({"1.5"}), UsageError);
}

} // namespace
} // namespace hsi::terminal
