// SPDX-License-Identifier: MIT
// Contains all tools in one executable. Called through a link such as gdal_hsi_spp, it runs this tool. Called
// as gdal_hsi, it runs the command of the suite, whose first argument is a tool.
#include "catalogue.h"
#include "links/links.h"
#include "terminal/terminal.h"

int main(int argc, char** argv) {
    hsi::links::register_links();
    return hsi::terminal::run_suite(hsi::tools::catalogue(), argc, argv);
}
