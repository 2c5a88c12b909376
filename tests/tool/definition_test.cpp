// SPDX-License-Identifier: MIT
// A tool as a value: its arguments, their checks, and runs in process, without a terminal or a file.
#include "tool/definition.h"

#include "core/error.h"
#include "support/memory_cube.h"
#include "support/recording_front_end.h"
#include "tool/execute.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace hsi::tool {
namespace {

using ToolRun = Run; // in a TEST, Run is a member of testing::Test

enum class Kind { fed, exact };

struct Settings {
    int window = 5;
    double limit = 0.25;
    int64_t big = 0;
    uint64_t seed = 1;
    std::vector<double> list{1.5};
    std::vector<std::string> names;
    std::array<int64_t, 2> pair{3, 4};
    std::vector<std::array<int, 2>> pairs;
    Kind kind = Kind::exact;
    std::string text = "auto";
    bool on = false;
    std::string file;
};

/// Returns a definition without files; the test can read its settings. It remains valid until the next call.
Definition bare(
    Settings*& seen, const std::function<void(Run&)>& work = [](ToolRun&) {}) {
    static Settings** shown;
    static std::function<void(Run&)> body;
    shown = &seen;
    body = work;
    return {"bare", "Bare", "It does nothing.", {}, "", [](Builder& args) {
                auto& s = args.settings<Settings>();
                *shown = &s;
                args.option("ws", s.window, "window").between(3, 63).in_unit("pixels").also("window");
                args.option("limit", s.limit, "limit").above(0);
                args.option("big", s.big, "big");
                args.option("seed", s.seed, "seed").from(0);
                args.option("list", s.list, "list").above(0);
                args.option("name", s.names, "names");
                args.option("pair", s.pair, "pair");
                args.option("pairs", s.pairs, "pairs").from(0);
                args.choice("kind", s.kind, "kind", {{"fed", Kind::fed, "fast"}, {"exact", Kind::exact}});
                args.option("text", s.text, "text");
                args.flag("on", s.on, "on");
                args.exclusive("ws", "limit");
                args.body(body);
            }};
}

struct OneGiven {
    std::string name;
    std::vector<std::string> words;
};

/// Returns the message and the advice that finish() throws; empty if it does not throw.
std::pair<std::string, std::string> refusal(const std::vector<OneGiven>& given, Settings* copy = nullptr) {
    Settings* settings = nullptr;
    const Definition definition = bare(settings);
    Call call(definition);
    try {
        for (const auto& one : given)
            call.give(one.name, one.words);
        call.finish();
    } catch (const UsageError& error) {
        return {error.what(), error.advice()};
    }
    if (copy != nullptr) *copy = *settings;
    return {};
}

Settings settings_of(const std::vector<OneGiven>& given) {
    Settings copy;
    EXPECT_EQ(refusal(given, &copy).first, "");
    return copy;
}

TEST(Arguments, CarryTheirDefaults) {
    Settings* settings = nullptr;
    const Definition definition = bare(settings);
    const Call call(definition);
    const auto preset = [&](const char* name) { return call.find(name)->preset.value; };
    EXPECT_EQ(preset("ws"), "5");
    EXPECT_EQ(preset("limit"), "0.25");
    EXPECT_EQ(preset("kind"), "exact");
    EXPECT_EQ(preset("text"), "auto");
    EXPECT_EQ(preset("list"), "");
    EXPECT_EQ(call.find("window"), call.find("ws"));
    EXPECT_EQ(call.find("nothing"), nullptr);
    EXPECT_EQ(call.find("kind")->value_name, "fed|exact");
    EXPECT_EQ(call.find("pair")->values, 2);
    EXPECT_EQ(call.find("on")->values, 0);
    EXPECT_TRUE(call.find("list")->repeatable);
    EXPECT_FALSE(call.find("pair")->repeatable);
    EXPECT_TRUE(call.find("pairs")->repeatable);
    EXPECT_EQ(call.find("pairs")->values, 2);
}

TEST(Arguments, ReachTheirVariables) {
    const Settings s = settings_of({{"window", {"7"}},
                                    {"big", {"-5000000000"}},
                                    {"seed", {"9223372036854775807"}},
                                    {"list", {"1,2"}},
                                    {"list", {"0.5"}},
                                    {"name", {"a,b"}},
                                    {"name", {"c"}},
                                    {"pair", {"-1", "2"}},
                                    {"pairs", {"1", "2"}},
                                    {"pairs", {"3", "4"}},
                                    {"kind", {"FED"}},
                                    {"text", {"-x"}},
                                    {"on", {}}});
    EXPECT_EQ(s.window, 7);
    EXPECT_EQ(s.big, -5000000000);
    EXPECT_EQ(s.seed, 9223372036854775807u);
    EXPECT_EQ(s.list, (std::vector<double>{1, 2, 0.5}));
    EXPECT_EQ(s.names, (std::vector<std::string>{"a,b", "c"}));
    EXPECT_EQ(s.pair, (std::array<int64_t, 2>{-1, 2}));
    EXPECT_EQ(s.pairs, (std::vector<std::array<int, 2>>{{1, 2}, {3, 4}}));
    EXPECT_EQ(s.kind, Kind::fed);
    EXPECT_EQ(s.text, "-x");
    EXPECT_TRUE(s.on);
    EXPECT_EQ(settings_of({}).list, std::vector<double>{1.5});
}

TEST(Arguments, RefuseWhatTheyDoNotAllow) {
    EXPECT_EQ(refusal({{"ws", {"65"}}}).first, "-ws: '65' is not a whole number from 3 to 63");
    EXPECT_EQ(refusal({{"ws", {"7.5"}}}).first, "-ws: '7.5' is not a whole number from 3 to 63");
    EXPECT_EQ(refusal({{"limit", {"0"}}}).first, "-limit: '0' is not a number above 0");
    EXPECT_EQ(refusal({{"limit", {"nan"}}}).first, "-limit: 'nan' is not a number above 0");
    EXPECT_EQ(refusal({{"limit", {"inf"}}}).first, "-limit: 'inf' is not a number above 0");
    EXPECT_EQ(refusal({{"list", {"1,0"}}}).first, "-list: '0' is not a number above 0");
    EXPECT_EQ(refusal({{"list", {"1,,2"}}}).first, "-list: '' is not a number above 0");
    EXPECT_EQ(refusal({{"seed", {"-1"}}}).first, "-seed: '-1' is not a whole number from 0 on");
    EXPECT_EQ(refusal({{"big", {"99999999999999999999"}}}).first,
              "-big: '99999999999999999999' is not a whole number");
    EXPECT_EQ(refusal({{"pairs", {"1", "-2"}}}).first, "-pairs: '-2' is not a whole number from 0 on");
    EXPECT_EQ(refusal({{"pairs", {"1"}}}).first, "-pairs: 2 values are needed, but 1 was given");
    EXPECT_EQ(refusal({{"pair", {"1"}}}).first, "-pair: 2 values are needed, but 1 was given");
    EXPECT_EQ(refusal({{"ws", {"5"}}, {"ws", {"5"}}}).first, "-ws is given 2 times");
    EXPECT_EQ(refusal({{"ws", {"5"}}, {"limit", {"1"}}}).first, "-ws cannot be used with -limit");
    EXPECT_EQ(refusal({{"nothing", {}}}).first, "unknown argument 'nothing'");
    const auto kind = refusal({{"kind", {"exakt"}}});
    EXPECT_EQ(kind.first, "-kind: 'exakt' is not fed or exact");
    EXPECT_EQ(kind.second, "Did you mean exact?");
    EXPECT_EQ(refusal({{"kind", {""}}}).second, "");
}

TEST(Execute, RunsWithoutATerminal) {
    Settings* settings = nullptr;
    const Definition definition = bare(settings, [&](ToolRun& run) {
        EXPECT_EQ(settings->window, 9);
        run.pass("one", 0.5).progress(1);
        run.note("half");
        run.warn("careful");
        run.print("42");
    });
    Call call(definition);
    call.give("ws", {"9"});
    test::RecordingFrontEnd front_end;
    const Outcome outcome = execute(call, front_end, "bare -ws 9");
    EXPECT_EQ(outcome.code, 0) << outcome.what;
    EXPECT_EQ(front_end.notes, std::vector<std::string>{"half"});
    EXPECT_EQ(front_end.warnings, std::vector<std::string>{"careful"});
    EXPECT_EQ(front_end.printed, std::vector<std::string>{"42"});
    EXPECT_EQ(front_end.bar, (std::vector<double>{0.5, 1})); // the bar ends with the run
    EXPECT_EQ(front_end.begun, 1);
    EXPECT_EQ(front_end.commits, 1);
    EXPECT_EQ(front_end.ended, 1);
}

TEST(Execute, EndsWithWhatWentWrong) {
    Settings* settings = nullptr;
    const Definition failing = bare(settings, [](ToolRun&) { throw Error("it\nbroke", "Mend it."); });
    Call call(failing);
    test::RecordingFrontEnd front_end;
    const Outcome outcome = execute(call, front_end, "bare");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.what, "it broke");
    EXPECT_EQ(outcome.advice, "Mend it.");
    EXPECT_EQ(front_end.commits, 0);
    EXPECT_EQ(front_end.ended, 1);

    Call wrong(failing);
    wrong.give("ws", {"4000"});
    test::RecordingFrontEnd unused;
    EXPECT_EQ(execute(wrong, unused, "bare").code, 2);
    EXPECT_EQ(unused.begun, 0); // nothing has begun, so nothing ends
    EXPECT_EQ(unused.ended, 0);
}

TEST(Execute, IsCancelledThroughTheHost) {
    Settings* settings = nullptr;
    const Definition definition = bare(settings, [](ToolRun& run) {
        const auto pass = run.pass("one", 1);
        for (int i = 1; i <= 4; ++i) {
            pass.progress(i / 4.0);
            if (pass.cancel->requested()) throw Error("the echo of it");
        }
    });
    Call call(definition);
    test::RecordingFrontEnd front_end;
    front_end.cancel_at = 0.5;
    const Outcome outcome = execute(call, front_end, "bare");
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.what, "interrupted");
    EXPECT_EQ(front_end.bar, (std::vector<double>{0.25, 0.5}));
}

TEST(Execute, CallsInTwoThreadsKnowNothingOfOneAnother) {
    const auto one = [](int window, Outcome& outcome, test::RecordingFrontEnd& front_end) {
        Settings* settings = nullptr;
        const Definition definition = bare(settings, [&](ToolRun& run) {
            for (int i = 0; i < 100; ++i)
                run.note(std::to_string(settings->window) + " " + std::to_string(i));
        });
        Call call(definition);
        call.give("ws", {std::to_string(window)});
        outcome = execute(call, front_end, "bare");
    };
    Outcome first, second;
    test::RecordingFrontEnd a, b;
    std::thread other(one, 7, std::ref(first), std::ref(a));
    one(9, second, b);
    other.join();
    EXPECT_EQ(first.code, 0);
    EXPECT_EQ(second.code, 0);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(a.notes.at(i), "7 " + std::to_string(i));
        EXPECT_EQ(b.notes.at(i), "9 " + std::to_string(i));
    }
}

} // namespace
} // namespace hsi::tool
