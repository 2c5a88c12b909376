// SPDX-License-Identifier: MIT
// Contains all tools in one executable. Called as gdal_hsi_spp (a link) it is that tool; called as gdal_hsi
// it is the suite.
#include "catalogue.h"
#include "links/links.h"
#include "terminal/terminal.h"

int main(int argc, char** argv) {
    hsi::links::register_links();
    return hsi::terminal::run_suite(hsi::tools::catalogue(), argc, argv);
}
