// SPDX-License-Identifier: MIT
// Arguments of pixel functions and of processing steps, as a VRT gives them: the first byte chooses the
// function, the second how many sources it has, then a line NAME=VALUE an argument.
#include "fuzz.h"
#include "gdal/function.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    fuzz::quiet_gdal();
    // A model named without a folder starts here: nothing of the disk is read.
    CPLSetConfigOption("GDAL_HSI_PATH", "/vsimem");
    fuzz::Bytes bytes(data, size);
    const auto& functions = plugin::definitions();
    const auto& steps = plugin::steps();
    const size_t which = bytes.take<uint8_t>() % (functions.size() + steps.size());
    const int sources = bytes.take<uint8_t>() % 9;
    CPLStringList list;
    for (const auto& line : fuzz::split(bytes.rest(), '\n')) {
        const std::string text = line.c_str(); // C strings: nothing comes after a zero byte
        if (text.find('=') == std::string::npos || text.find("/vsi") != std::string::npos ||
            text.find("=/") != std::string::npos || text.find("..") != std::string::npos)
            continue;
        list.AddString(text.c_str());
    }
    try {
        if (which < functions.size()) {
            const plugin::Arguments arguments(functions[which].name, list.List(), "/vsimem");
            const auto f = plugin::understand(functions[which], arguments, sources);
            fuzz::expect(f.bands >= 1 && f.masks >= 0 && f.bands + f.masks == sources,
                         "every source has a role");
            fuzz::expect(f.operation != nullptr, "a function that was understood has an operation");
            fuzz::expect(f.output < f.operation->output_bands().size(), "its output is there");
            fuzz::expect(f.band < f.operation->output_bands()[f.output], "its band is there");
            fuzz::expect(f.nodata.size() == static_cast<size_t>(f.bands), "a nodata value a band");
        } else {
            const auto& step = steps[which - functions.size()];
            const plugin::Arguments arguments(step.name, list.List(), "/vsimem");
            if (sources > 0) step.understand(arguments, sources);
        }
    } catch (const Error&) {
    }
    return 0;
}
