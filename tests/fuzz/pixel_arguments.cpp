// SPDX-License-Identifier: MIT
// Arguments of pixel functions and of processing steps in a VRT, one NAME=VALUE per line.
#include "fuzz/fuzz.h"
#include "gdal/arguments.h"

#include <cmath>

namespace {

using namespace hsi;

/// Checks a reader of arguments. It must throw an error, or return a result that satisfies `holds` and is
/// equal in a second call.
template <class Read, class Holds>
void twice(const Read& read, const Holds& holds, const char* what) {
    try {
        const auto once = read();
        fuzz::expect(holds(once), what);
        const auto again = read();
        fuzz::expect(once == again || !holds(once), "an argument reads the same twice");
    } catch (const Error&) {
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet_gdal();
    CPLStringList list;
    for (const auto& line : fuzz::split(std::string(reinterpret_cast<const char*>(data), size), '\n'))
        if (const std::string text = line.c_str(); text.find('=') != std::string::npos)
            list.AddString(text.c_str());
    const plugin::Arguments arguments("hsi_test", list.List(), "/vsimem");
    for (const char* name : {"spectra", "weights", "model", "centroid", "nodata", "output"}) {
        twice([&] { return arguments.text(name); }, [](const std::string&) { return true; }, "a text");
        twice([&] { return arguments.number(name, 1.0); }, [](double v) { return !std::isnan(v); },
              "a number is one");
        twice([&] { return arguments.whole(name, -3, 7, 2); }, [](int v) { return v >= -3 && v <= 7; },
              "a whole number keeps its limits");
        twice([&] { return arguments.yes(name, false); }, [](bool) { return true; }, "yes or no");
        twice(
            [&] {
                return arguments.choice(name, {"angle", "class"});
            },
            [](const std::string& v) { return v == "angle" || v == "class"; },
            "a choice is one of those offered");
        twice([&] { return arguments.numbers(name); }, [](const std::vector<double>&) { return true; },
              "numbers");
        twice([&] { return arguments.lists(name); },
              [](const std::vector<std::vector<double>>& v) { return !v.empty(); }, "there is a list");
        twice([&] { return arguments.pieces(name); },
              [](const std::vector<std::string>& v) {
                  for (const auto& piece : v)
                      if (piece.empty() || piece.front() == ' ' || piece.back() == ' ') return false;
                  return true;
              },
              "pieces are trimmed, and none is empty");
        twice([&] { return arguments.path(name); }, [](const std::string& v) { return !v.empty(); },
              "a file has a name");
    }
    try {
        arguments.refuse_others();
    } catch (const Error&) {
    }
    return 0;
}
