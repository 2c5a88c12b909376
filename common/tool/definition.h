// SPDX-License-Identifier: MIT
// A tool as a value. All that a user sees (options, help, man page, completion, forms, commands of GDAL) is
// generated from its Definition. declare() builds a Declaration; a front end fills a Call of the declaration
// and passes the call to execute().
//
//   void declare(tool::Builder& args) {
//       auto& s = args.settings<Settings>();
//       args.add_source();
//       args.add_destination();
//       args.add_compute();
//       args.option("ws", s.window, "Window size").between(3, 63).in_unit("pixels");
//       args.output("alpha", s.alpha, Content::raster, "Also write alpha to this file");
//       args.check([&s](const tool::CommonOptions&) { ... throw UsageError(...) ... });
//       args.body([&s](tool::Run& run) { ... });
//   }
//   constinit const tool::Definition spp{"spp", "Spatial preprocessing (SPP)", "Moves every spectrum ...",
//                                        {{"gdal_hsi_spp scene.img y.tif", "..."}}, "", declare};
#pragma once

#include "tool/argument.h"
#include "tool/call.h"
#include "tool/declaration.h"

#include <initializer_list>
#include <string>

namespace hsi::tool {

/// A command line as an example, with its purpose in a few words.
struct Example {
    const char *command, *purpose;
};

/// The constant definition of a tool. Options are declared only when the tool is called.
struct Definition {
    const char* name;        ///< "spp": the executable is gdal_hsi_spp, and GDAL's command is hsi spp
    const char* title;       ///< a few words: "Spatial preprocessing (SPP)"
    const char* description; ///< purpose of the tool, in whole sentences
    std::initializer_list<Example> examples;
    const char* notes; ///< further paragraphs of the help; may be empty
    void (*declare)(Builder& args);
    bool one_process = false; ///< several ranks are no faster: rank 0 works, and the others wait
    bool on_arrays = true;    ///< false: a tool for files only, which libhsi does not offer (plugins/arrays)
    /// True: the words of the tool are steps of other tools. Help and completion then include the options of
    /// these tools.
    bool steps = false;

    std::string executable() const { return std::string("gdal_hsi_") + name; }
};

} // namespace hsi::tool
