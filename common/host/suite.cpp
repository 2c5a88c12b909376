// SPDX-License-Identifier: MIT
#include "host/suite.h"
#include "core/cuda_module.h"
#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "host/help.h"
#include "host/man_page.h"
#include "host/process.h"
#include "host/terminal.h"
#include "host/usage_json.h"
#include "tool/execute.h"

#include <gdal.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace hsi::host {
namespace {

using Tools = std::vector<const tool::Definition*>;

const tool::Definition* tool_named(const Tools& tools, const std::string& name) {
    const auto found = std::find_if(tools.begin(), tools.end(), [&](const tool::Definition* one) {
        return name == one->name || one->executable() == name;
    });
    return found == tools.end() ? nullptr : *found;
}

/// The same of a step, in whose name "_" may be "-".
const tool::Definition* step_named(const Tools& tools, std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return tool_named(tools, name);
}

std::string suite_help(const Tools& tools) {
    std::string text =
        "Usage: gdal_hsi TOOL [options] arguments\n\nHyperspectral image processing on georeferenced "
        "cubes of any size. Each tool is\nalso a command of its own, gdal_hsi_TOOL.\n\nTools:\n";
    for (const tool::Definition* one : tools) {
        const std::string name = one->name;
        text += "  " + name + std::string(std::max<size_t>(16, name.size() + 2) - name.size(), ' ') +
                one->title + "\n";
    }
    return text +
           "\n'gdal_hsi TOOL --help' tells a tool's options; --version, --json-usage: about all of them.\n";
}

std::string suite_json(const Tools& tools) {
    auto all = OrderedJson::array();
    for (const tool::Definition* one : tools)
        all.push_back(OrderedJson::parse(usage_json(tool::Call(*one))));
    const OrderedJson json{
        {"schema", usage_schema}, {"name", "gdal_hsi"}, {"version", tool::project_version()}, {"tools", all}};
    return json.dump(2) + "\n";
}

int unknown(const std::string& word, const Tools& tools) {
    std::vector<std::string> names;
    for (const tool::Definition* one : tools)
        names.push_back(one->name);
    const std::string near = did_you_mean(word, names);
    std::fprintf(stderr, "ERROR: there is no tool '%s'\n%s%sRun 'gdal_hsi --help' for all tools.\n",
                 word.c_str(), near.c_str(), near.empty() ? "" : " ");
    return 2;
}

int print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    try {
        check_standard_output();
        return 0;
    } catch (const Error& error) {
        std::fprintf(stderr, "ERROR: %s\n", error.what());
        return 1;
    }
}

/// "--man spp", "--option-table spp"
int print_about(const std::string& what, const std::string& name, const Tools& tools) {
    if (what == "--man" && name == "gdal_hsi") return print(suite_man_page(tools));
    if (what == "--option-table" && name == "shared") return print(shared_option_table());
    const tool::Definition* one = tool_named(tools, name);
    if (one == nullptr) return unknown(name, tools);
    const tool::Call call(*one);
    return print(what == "--man" ? man_page(call) : option_table(call));
}

/// The tool whose step a word for help stands in; in a step that is no tool that of the steps; null: there is
/// no such word.
const tool::Definition* step_with_help(const Tools& tools, const tool::Definition& called,
                                       const std::vector<char*>& words) {
    const tool::Definition* step = nullptr;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string word = words[i];
        if (word == "--help" || word == "-h") return step != nullptr ? step : &called;
        const std::string before = i > 0 ? words[i - 1] : "";
        if (before == "!" || before == "[" || before == "tee") step = step_named(tools, word);
    }
    return nullptr;
}

/// The tool; where help is asked for in a step of a chain of tools, the help of that step's.
int run_tool(const Tools& tools, const tool::Definition& called, int argc, char** argv) {
    const auto* const step = called.steps ? step_with_help(tools, called, {argv + 1, argv + argc}) : nullptr;
    if (step == nullptr) return run_in_terminal(called, argc, argv);
    std::string name = step->executable(), help = "--help";
    char* line[] = {name.data(), help.data(), nullptr};
    return run_in_terminal(*step, 2, line);
}

/// "--complete" of steps: at the beginning of one the names of steps, within one what its tool completes.
int complete_steps(const Tools& tools, const tool::Definition& pipeline, const std::vector<char*>& words) {
    size_t first = words.size(); // of the step that the last word is in
    for (size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string word = words[i];
        if (word == "!" || word == "[" || word == "tee") first = i + 1;
        if (word == "read" && first == words.size()) first = i;
    }
    std::vector<char*> line;
    std::string name = pipeline.executable(), complete = "--complete";
    if (first + 1 == words.size()) {
        std::string names;
        std::vector<std::string> all{"read", "tee", "write"};
        for (const tool::Definition* one : tools)
            if (one != &pipeline) all.push_back(one->name);
        for (const std::string& one : all)
            if (one.rfind(words.back(), 0) == 0) names += one + "\n";
        return print(names);
    }
    const tool::Definition* step = first < words.size() ? step_named(tools, words[first]) : &pipeline;
    if (step == nullptr) return print("FILES\n"); // read and write
    line = {name.data(), complete.data()};
    line.insert(line.end(), words.begin() + static_cast<ptrdiff_t>(step == &pipeline ? 0 : first + 1),
                words.end());
    return run_in_terminal(*step, static_cast<int>(line.size()), line.data());
}

} // namespace

int run_suite(const Tools& tools, int argc, char** argv) {
    open_standard_descriptors();
    keep_to_own_data();
    restart_without_stuck_blas_threads(argv);
    end_idle_blas_threads();
    ask_for_few_cuda_queues();
    std::string name = argc > 0 ? argv[0] : "";
    name.erase(0, name.rfind('/') + 1);
    if (const tool::Definition* called = tool_named(tools, name)) {
        if (called->steps && argc > 2 && std::string(argv[1]) == "--complete")
            return complete_steps(tools, *called, {argv + 2, argv + argc});
        return run_tool(tools, *called, argc, argv);
    }

    const std::string word = argc > 1 ? argv[1] : "--help";
    if (word == "--help" || word == "-h") return print(suite_help(tools));
    if (word == "--version")
        return print("gdal_hsi " + std::string(tool::project_version()) + ", GDAL " +
                     GDALVersionInfo("RELEASE_NAME") + "\n");
    if (word == "--json-usage") return print(suite_json(tools));
    if ((word == "--man" || word == "--option-table") && argc > 2) return print_about(word, argv[2], tools);
    if (word == "--complete") {
        if (argc > 3 && std::string(argv[2]) == "--man") {
            argv[2] = argv[3]; // a tool's name
            argc = 3;
        }
        if (argc > 3) {
            const tool::Definition* one = tool_named(tools, argv[2]);
            if (one == nullptr) return 0;
            if (one->steps) return complete_steps(tools, *one, {argv + 3, argv + argc});
            argv[2] = argv[1]; // the tool completes what follows its name
            return run_in_terminal(*one, argc - 1, argv + 1);
        }
        const std::string begin = argc > 2 ? argv[2] : "";
        std::string names;
        for (const tool::Definition* one : tools)
            if (std::string(one->name).rfind(begin, 0) == 0) names.append(one->name).append("\n");
        for (const char* const option : {"--help", "--version", "--json-usage", "--man"})
            if (begin[0] == '-' && std::string(option).rfind(begin, 0) == 0)
                names.append(option).append("\n");
        return print(names);
    }
    if (const tool::Definition* one = tool_named(tools, word))
        return run_tool(tools, *one, argc - 1, argv + 1);
    return unknown(word, tools);
}

} // namespace hsi::host
