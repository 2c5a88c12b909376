// SPDX-License-Identifier: MIT
// Tables of spectra as people and programs write them: the number of spectra, their wavelengths, and the
// messages.
#include "core/error.h"
#include "raster/spectral_library.h"

#include <gtest/gtest.h>

#include <cpl_vsi.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace hsi::raster {
namespace {

constexpr int bands = 24, spectra = 3;
const std::vector<std::string> names = {"oak", "grass", "soil"};

std::string text_of(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

double nm(int band) { return 450 + 80.5 * band; }
std::string value(int spectrum, int band) {
    return text_of(0.2 + 0.1 * spectrum + 0.01 * ((7 * band + 3 * spectrum) % 13));
}

using Numbers = std::function<double(double)>; ///< of a wavelength in nanometres

/// Returns a table with one column per spectrum. `more`: the name of an additional column.
std::string columns(const std::string& head, const Numbers& number, const std::string& more = "",
                    const std::string& cell = "") {
    std::string text = head + ",oak,grass,soil" + (more.empty() ? "" : "," + more) + "\n";
    for (int b = 0; b < bands; ++b) {
        text += text_of(number(nm(b)));
        for (int k = 0; k < spectra; ++k)
            text += "," + value(k, b);
        text += (more.empty() ? "" : "," + cell) + "\n";
    }
    return text;
}

using Names = std::function<std::string(int band)>;

/// Returns a table with one row per spectrum. `first`: the cells of the first column.
std::string rows(const std::string& head, const std::vector<std::string>& first, const Names& name) {
    std::string text = head;
    for (int b = 0; b < bands; ++b)
        text += "," + name(b);
    for (int k = 0; k < spectra; ++k) {
        text += "\n" + first[static_cast<size_t>(k)];
        for (int b = 0; b < bands; ++b)
            text += "," + value(k, b);
    }
    return text + "\n";
}

double same(double v) { return v; }

SpectralLibrary read(const std::string& text, const std::string& name = "table.csv") {
    const std::string path = "/vsimem/" + name;
    VSIFCloseL(VSIFileFromMemBuffer(path.c_str(), reinterpret_cast<GByte*>(const_cast<char*>(text.data())),
                                    text.size(), FALSE));
    try {
        auto library = read_spectral_library(path);
        VSIUnlink(path.c_str());
        return library;
    } catch (...) {
        VSIUnlink(path.c_str());
        throw;
    }
}

std::string notes_of(const SpectralLibrary& library) {
    std::string notes;
    for (const auto& note : library.notes)
        notes += note + "\n";
    return notes;
}

/// Checks that the table contains the three spectra at their wavelengths, with the note `told`; without notes
/// if it is empty.
void expect_spectra(const std::string& text, const std::string& told, const std::string& what,
                    const std::string& file = "table.csv") {
    SCOPED_TRACE(what);
    SpectralLibrary library;
    try {
        library = read(text, file);
    } catch (const Error& error) {
        ADD_FAILURE() << error.what();
        return;
    }
    ASSERT_EQ(library.spectra.size(), size_t{spectra}) << notes_of(library);
    ASSERT_EQ(library.wavelengths_nm.size(), size_t{bands}) << notes_of(library);
    const bool falls = library.wavelengths_nm.front() > library.wavelengths_nm.back();
    for (int b = 0; b < bands; ++b) {
        const int at = falls ? bands - 1 - b : b;
        EXPECT_NEAR(library.wavelengths_nm[static_cast<size_t>(b)], nm(at), 1e-3);
    }
    const std::string notes = notes_of(library);
    if (told.empty())
        EXPECT_EQ(notes, "");
    else
        EXPECT_NE(notes.find(told), std::string::npos) << notes;
}

std::string refusal(const std::string& text, const std::string& file = "table.csv") {
    try {
        read(text, file);
    } catch (const Error& error) {
        return error.what() + ("\n" + error.advice());
    }
    return "";
}

const char* const assumed = "nanometres are assumed";

TEST(LibraryTable, UnitsAreReadWhereverTheyAreStated) {
    const double light = 299792.458, volt = 1239.841984332;
    const auto micrometres = [](double v) { return v / 1000; };
    const auto wavenumbers = [](double v) { return 1e7 / v; };
    const auto terahertz = [=](double v) { return light / v; };
    expect_spectra(columns("THz", terahertz), "", "a frequency");
    expect_spectra(columns("Frequency (THz)", terahertz), "", "a named frequency");
    expect_spectra(columns("Energy (eV)", [=](double v) { return volt / v; }), "", "an energy");
    expect_spectra(columns("wn", wavenumbers), "", "wn");
    expect_spectra(columns("wavelength_m", [](double v) { return v / 1e9; }), "", "metres");
    for (const auto& [corner, number] : {std::pair<const char*, Numbers>{"wn", wavenumbers},
                                         {"Wavenumber (cm-1)", wavenumbers},
                                         {"um", micrometres},
                                         {"Frequency (THz)", terahertz},
                                         {"Photon energy [keV]", [=](double v) { return volt / 1000 / v; }},
                                         {"sample \\ wavelength (um)", micrometres}})
        expect_spectra(rows(corner, names, [&](int b) { return text_of(number(nm(b))); }), "",
                       std::string("a corner: ") + corner);
    const std::string micro = columns("wavelength", micrometres);
    expect_spectra("# Wavelength unit: um\n" + micro, "", "a comment");
    expect_spectra("My library, wavelengths in um\n" + micro, "", "a title");
    expect_spectra("# radiance (W/m2/sr/um)\n" + micro, "micrometres are assumed", "a unit of another thing");
    std::string second = micro;
    second.insert(second.find('\n') + 1, "micrometer,,,\n");
    expect_spectra(second, "", "a second line");
    expect_spectra(columns("wavelength", micrometres, "unit", "um"), "", "a column of units");
    std::string line = rows("name", names, [&](int b) { return text_of(nm(b) / 1000); });
    std::string units = "unit";
    for (int b = 0; b < bands; ++b)
        units += ",um";
    line.insert(line.find('\n') + 1, units + "\n");
    expect_spectra(line, "", "a second line of units");
    std::string pairs, point;
    for (int b = 0; b < bands; ++b) {
        for (int k = 0; k < spectra; ++k)
            pairs += (k > 0 ? "\t" : "") + text_of(nm(b)) + ", " + value(k, b);
        pairs += "\n";
        point += text_of(1e7 / nm(b)) + "," + value(0, b) + "," + value(1, b) + "," + value(2, b) + "\n";
    }
    expect_spectra(point, "", "OPUS", "table.dpt");
    expect_spectra(pairs, "read as the wavelengths, in nm", "pairs between tabs", "pairs.txt");
}

TEST(LibraryTable, UnitsThatAreAssumedAreTold) {
    expect_spectra(columns("wavelength", same), assumed, "no unit");
    expect_spectra(columns("wavelength", [](double v) { return v / 1000; }), "micrometres are assumed",
                   "micrometres");
    expect_spectra(columns("wavelength", [](double v) { return v / 1e9; }), "metres are assumed", "metres");
    expect_spectra(columns("Wavelength (?m)", [](double v) { return v / 1000; }), "micrometres are assumed",
                   "a lost letter");
    expect_spectra(columns("x", same), "read as the wavelengths, in nm", "another name");
    std::string headless = columns("wavelength", same);
    headless.erase(0, headless.find('\n') + 1);
    expect_spectra(headless, "has no name, rises as wavelengths do and is read as the wavelengths, in nm",
                   "no head");
    expect_spectra(rows("name", names, [](int b) { return text_of(nm(b)); }), assumed, "names of columns");
    expect_spectra(rows("height (m)", {"1.5", "2", "2.5"}, [](int b) { return text_of(nm(b)); }), assumed,
                   "a unit of another thing in the corner");
    for (const char* head : {"Raman shift (cm-1)", "Raman shift", "Energy", "Frequency"}) {
        const auto library = read(columns(head, same));
        EXPECT_TRUE(library.wavelengths_nm.empty() && library.spectra.size() == spectra) << head;
        EXPECT_NE(notes_of(library).find("the wavelengths are unknown"), std::string::npos) << head;
        const auto lines = read(rows(head, names, [](int b) { return text_of(nm(b)); }));
        EXPECT_TRUE(lines.wavelengths_nm.empty() && lines.spectra.size() == spectra) << head;
    }
    const auto kept = read("Raman shift (cm-1),wavelength (nm),a\n200,850,0.1\n300,860,0.2\n400,870,0.3\n");
    EXPECT_EQ(kept.names, std::vector<std::string>{"a"});
    EXPECT_EQ(kept.wavelengths_nm.front(), 850);
}

TEST(LibraryTable, NumbersOfSamplesInFrontAreNotWavelengths) {
    const Names plain = [](int b) { return text_of(nm(b)); };
    for (const char* head : {"ident", "plot", "accession", "lab id", "Pflanze", "", "number", "x", "date"})
        for (const std::vector<std::string>& first : {std::vector<std::string>{"1001", "1002", "1003"},
                                                      {"10526", "10600", "10700"},
                                                      {"1", "2", "3"},
                                                      {"20200101", "20200102", "20200105"},
                                                      {"2020-01-01", "2020-01-02", "2020-01-03"}})
            expect_spectra(rows(head, first, plain), assumed, std::string(head) + " " + first[0]);
    std::string text = rows("ident,species", {"1001,Oak", "1002,Oak", "1003,Ash"}, plain);
    expect_spectra(text, assumed, "texts beside");
    EXPECT_EQ(read(text).names, (std::vector<std::string>{"Oak", "Oak", "Ash"}));
    const auto called = read(columns("wavelength_nm", same).replace(13, 15, ",401,402,403"));
    EXPECT_EQ(called.names, (std::vector<std::string>{"401", "402", "403"}));
}

TEST(LibraryTable, NamesOfColumnsAreWavelengthsInManyForms) {
    for (const char* form :
         {"X%s", "X%s.nm", "R%s", "refl_%s", "wl_%s", "%snm", "%s [nm]", "%s_ref", "spc.%s", "V%s",
          "Band_%snm", "B1_%snm", "%s_nm", "nm_%s", "scan_visnir.%s_ref", "SR_%s", "foo.%s"})
        for (const auto& first : {names, {"1001", "1002", "1003"}, {"1", "2", "3"}}) {
            const auto name = [&](int b) {
                std::string text = form;
                return text.replace(text.find("%s"), 2, text_of(nm(b)));
            };
            const bool unit = std::string(form).find("nm") != std::string::npos;
            expect_spectra(rows("sample", first, name), unit ? "" : assumed, form + (" " + first[0]));
        }
    expect_spectra(
        rows("name", names, [](int b) { return "B" + std::to_string(b + 1) + "_" + text_of(nm(b)); }),
        assumed, "a number of the band in front");
    expect_spectra(
        rows("name", names,
             [](int b) { return "Band " + std::to_string(b + 1) + " (" + text_of(nm(b)) + " nm)"; }),
        "", "a number of the band and a unit");
    for (const char* counting : {"V", "", "b"}) {
        const auto library =
            read(rows("name", names, [&](int b) { return counting + std::to_string(b + 1); }));
        EXPECT_TRUE(library.wavelengths_nm.empty() && library.spectra.size() == spectra) << counting;
    }
    // Spectra whose name is a word and a number remain columns.
    for (const char* head : {"wavelength_nm", "x", "index"}) {
        std::string text = std::string(head) + ",GDS101,GDS102,GDS103,GDS104,GDS105,GDS106\n";
        for (int b = 0; b < bands; ++b)
            text +=
                (head == std::string("index") ? std::to_string(b) : text_of(nm(b))) + ",.1,.2,.3,.4,.5,.6\n";
        EXPECT_EQ(read(text).spectra.size(), 6U) << head;
    }
}

TEST(LibraryTable, WhatStandsBesideTheSpectraIsLeftOut) {
    for (const char* statistic :
         {"Std", "Stdev", "SD", "N", "Count", "Min", "Max", "Standard Deviation", "std dev"})
        expect_spectra(columns("wavelength_nm", same, statistic, "12"), "is a statistic", statistic);
    EXPECT_EQ(read("wavelength_nm,Std\n400,1\n500,2\n").names,
              std::vector<std::string>{"Std"});                                        // its only column
    EXPECT_EQ(read("wavelength_nm,n,k\n400,1.5,2\n500,1.4,2.5\n").spectra.size(), 2U); // a refractive index
    std::string counts =
        rows("name", {"oak", "Std", "Max"}, [](int b) { return text_of(nm(b)) + " nm"; }) + "N";
    for (int b = 0; b < bands; ++b)
        counts += ",12";
    EXPECT_EQ(read(counts + "\n").names, std::vector<std::string>{"oak"});
    const auto lines =
        read(rows("name", {"oak", "Std", "Count"}, [](int b) { return text_of(nm(b)) + " nm"; }));
    EXPECT_EQ(lines.names, std::vector<std::string>{"oak"});
    expect_spectra(columns("wavelength_nm", same, "quality", "good"), "has texts, which are ignored",
                   "texts");
    std::string between = rows("name", names, [](int b) { return text_of(nm(b)) + " nm"; }), out;
    for (size_t at = 0; at < between.size();) { // a column of texts in the middle
        const size_t end = between.find('\n', at);
        size_t comma = at;
        for (int k = 0; k < 7; ++k)
            comma = between.find(',', comma + 1);
        out += between.substr(at, comma - at) + ",note" + between.substr(comma, end + 1 - comma);
        at = end + 1;
    }
    expect_spectra(out, "", "texts between");
}

TEST(LibraryTable, ColumnsInFrontThatCountAreNotSpectra) {
    for (const char* head : {"Sample", "sample no.", "Point", "Scan", "ID", "Measurement", "Obs",
                             "Data point", "seq", "#", "Row", "Point #", "ramp"})
        for (const int first : {0, 1}) {
            std::string text = std::string(head) + ",Wavelength (nm),oak,grass,soil\n", two = "Site," + text;
            for (int b = 0; b < bands; ++b) {
                const std::string line = std::to_string(b + first) + "," + text_of(nm(b)) + "," +
                                         value(0, b) + "," + value(1, b) + "," + value(2, b) + "\n";
                text += line;
                two += "7," + line; // one site
            }
            expect_spectra(text, "counts the lines", head);
            expect_spectra(two, "has sample numbers", head + std::string(" and a site"));
        }
}

TEST(LibraryTable, StatisticsOfASpectrumAreNotSpectra) {
    for (const char* name :
         {"soil Std", "soil_sd", "sd_soil", "soil (std)", "soilStd", "soil.SE", "SE", "Std of soil",
          "soil variance", "CI95", "oak error", "soil max", "std. error of the mean"})
        expect_spectra(columns("wavelength_nm", same, name, "0.012"), "is a statistic", name);
    for (const char* name : {"N", "soil N", "soil_n", "n soil"})
        expect_spectra(columns("wavelength_nm", same, name, "12"), "is a statistic", name);
    // These are the names of an unknown spectrum, of the element, and of a refractive index.
    for (const char* name : {"clay Std", "Se", "soil n"})
        EXPECT_EQ(read(columns("wavelength_nm", same, name, "0.012")).names.back(), name);
    const auto pair =
        read("wavelength_nm,soil mean,soil std,oak mean,oak std\n400,.1,.01,.2,.02\n500,.3,.01,.4,.02\n");
    EXPECT_EQ(pair.names, (std::vector<std::string>{"soil mean", "oak mean"}));
    const auto lines =
        read(rows("name", {"soil", "soil_sd", "oak"}, [](int b) { return text_of(nm(b)) + " nm"; }));
    EXPECT_EQ(lines.names, (std::vector<std::string>{"soil", "oak"}));
}

TEST(LibraryTable, BlanksBetweenTabsAreOfNamesAndNumbers) {
    for (const char* blank : {" ", "\xc2\xa0", "\xe2\x80\xaf"})
        for (const char* point : {".", ","})
            for (const char separator : {'\t', ';'}) {
                std::string text = "wavelength (nm)\tOak leaf\tDry grass\tBare soil\n";
                for (int b = 0; b < bands; ++b) {
                    const int hundreds = static_cast<int>(nm(b)) % 1000,
                              thousands = static_cast<int>(nm(b)) / 1000;
                    char wavelength[32];
                    std::snprintf(wavelength, sizeof wavelength,
                                  thousands > 0 ? "%d%s%03d%s%d" : "%.0d%.0s%d%s%d", thousands, blank,
                                  hundreds, point, b % 2 == 0 ? 0 : 5);
                    text += wavelength;
                    for (int k = 0; k < spectra; ++k)
                        text += "\t1" + std::string(blank) + std::to_string(100 + 7 * b + k);
                    text += "\n";
                }
                std::replace(text.begin(), text.end(), '\t', separator);
                expect_spectra(text, "", text.substr(40, 60), "table.tsv");
                const auto library = read(text, "table.tsv");
                EXPECT_EQ(library.names, (std::vector<std::string>{"Oak leaf", "Dry grass", "Bare soil"}));
                EXPECT_EQ(library.spectra[2][3], 1123) << text.substr(40, 60);
            }
    const auto between = read("wl oak grass\n450 \t0.1 0.2\n460 \t0.1 0.3\n470 \t0.1 0.4\n", "table.tsv");
    EXPECT_EQ(between.names, (std::vector<std::string>{"oak", "grass"}));
    const auto decimal = read("450 100,250 200,125\n460 100,350 200,225\n470 100,450 200,325\n", "table.txt");
    ASSERT_EQ(decimal.spectra.size(), 2U);
    EXPECT_EQ(decimal.spectra[0][0], 100.25);
}

TEST(LibraryTable, WavelengthsMayRepeat) {
    for (const char* head : {"wavelength_nm,a\n", "nm,a\n", "x,a\n", ""}) {
        std::string text = head;
        for (int b = 0; b < bands; ++b)
            for (int k = 0; k < (b % 4 == 0 ? 2 : 1); ++k)
                text += text_of(nm(b)) + "," + value(0, b) + "\n";
        const auto library = read(text);
        EXPECT_EQ(library.spectra.size(), 1U) << head;
        EXPECT_EQ(library.wavelengths_nm.size(), 30U) << head;
    }
}

TEST(LibraryTable, LongFormatIsRefusedWithWhatToDo) {
    std::string by_name = "id,wavelength,reflectance\n", by_band = by_name, by_number = by_name,
                bare = "wl,value\n", numbers = "id,band,value\n";
    for (int k = 0; k < spectra; ++k)
        for (int b = 0; b < bands; ++b) {
            const std::string& name = names[static_cast<size_t>(k)];
            by_name += name + "," + text_of(nm(b)) + "," + value(k, b) + "\n";
            by_number += std::to_string(k + 1) + "," + text_of(nm(b)) + "," + value(k, b) + "\n";
            numbers += name + "," + std::to_string(b + 1) + "," + value(k, b) + "\n";
            bare += text_of(nm(b)) + "," + value(k, b) + "\n";
        }
    std::string by_band_number = by_band;
    for (int b = 0; b < bands; ++b)
        for (int k = 0; k < spectra; ++k) {
            by_band += names[static_cast<size_t>(k)] + "," + text_of(nm(b)) + "," + value(k, b) + "\n";
            by_band_number += std::to_string(k + 1) + "," + text_of(nm(b)) + "," + value(k, b) + "\n";
        }
    for (const auto& text : {by_name, by_band, by_number, by_band_number, bare, numbers}) {
        const std::string said = refusal(text);
        EXPECT_NE(said.find("is in long format"), std::string::npos) << text.substr(0, 80) << said;
        EXPECT_NE(said.find("pivot("), std::string::npos) << said;
    }
    EXPECT_NE(refusal(by_name).find("pivot(index='wavelength', columns='id', values='reflectance')"),
              std::string::npos);
}

TEST(LibraryTable, RelabCountsItsLines) {
    std::string lines;
    for (int b = 0; b < bands; ++b)
        lines += "   " + text_of(nm(b)) + "   " + value(0, b) + "\n";
    for (const char* file : {"relab.asc", "relab.txt"}) {
        const auto library = read("  24\n" + lines, file);
        EXPECT_EQ(library.spectra.size(), 1U);
        EXPECT_EQ(library.wavelengths_nm.size(), size_t{bands});
        EXPECT_EQ(library.wavelengths_nm.front(), 450);
    }
    EXPECT_NE(refusal("  25\n" + lines, "relab.asc").find("counts 25 lines, but 24 follow"),
              std::string::npos);
    EXPECT_EQ(read("24\nWavelength_nm oak\n" + lines, "relab.tab").names, std::vector<std::string>{"oak"});
}

TEST(LibraryTable, RelabHasDeviations) {
    std::string lines, alike;
    for (int b = 0; b < bands; ++b) {
        lines += text_of(nm(b)) + " " + value(0, b) + " 0.00" + std::to_string(b % 7) + "\n";
        alike += text_of(nm(b)) + " " + value(0, b) + " " + value(1, b) + "\n";
    }
    const auto library = read("24\n" + lines, "relab.asc");
    EXPECT_EQ(library.names, std::vector<std::string>{"Spectrum 1"});
    EXPECT_EQ(library.wavelengths_nm.front(), 450);
    EXPECT_EQ(read("24\n" + alike, "relab.asc").spectra.size(), 2U);
    EXPECT_EQ(read(lines, "plain.asc").spectra.size(), 2U);
}

TEST(LibraryTable, LinesOfSpectraWithoutALineOfNames) {
    const auto bands_of = [](const std::string& corner, const std::vector<double>& first) {
        std::string text = corner;
        for (const double v : first)
            text += "," + text_of(v);
        return text + "\n";
    };
    const std::vector<double> a = {0.1685, 0.741, 0.35, 0.52}, b = {0.4, 0.21, 0.66, 0.05};
    const std::vector<double> stored = {1685, 7410, 3500, 5200}, more = {4000, 2100, 6600, 500};
    struct Row {
        std::string text;
        std::vector<std::string> names;
        size_t bands;
        double first;
        bool wavelengths;
    };
    const Row table[] = {
        {bands_of("oak", a) + bands_of("soil", b), {"oak", "soil"}, 4, 0.1685, false},
        {bands_of("oak,tree", a) + bands_of("soil,ground", b), {"oak", "soil"}, 4, 0.1685, false},
        {bands_of("oak", stored) + bands_of("soil", more), {"oak", "soil"}, 4, 1685, false},
        {bands_of("oak", {0.01, 0.02, 0.3}) + bands_of("soil", {0.2, 0.1, 0.4}),
         {"oak", "soil"},
         3,
         0.01,
         false},
        {bands_of("name", {0.65, 0.45, 0.85}) + bands_of("oak", {0.2, 0.1, 0.4}), {"oak"}, 3, 0.2, true},
        {bands_of("Material", {650, 450, 850}) + bands_of("oak", {0.2, 0.1, 0.4}), {"oak"}, 3, 0.2, true},
        {bands_of("Material", {0.45, 0.65, 0.85}) + bands_of("oak", {0.2, 0.1, 0.4}), {"oak"}, 3, 0.2, true},
        {bands_of("Material", {1, 2, 3}) + bands_of("oak", {0.2, 0.1, 0.4}), {"oak"}, 3, 0.2, false},
    };
    for (const Row& row : table) {
        const auto library = read(row.text);
        EXPECT_EQ(library.names, row.names) << row.text;
        ASSERT_EQ(library.spectra.front().size(), row.bands) << row.text;
        EXPECT_DOUBLE_EQ(library.spectra.front().front(), row.first) << row.text;
        EXPECT_EQ(!library.wavelengths_nm.empty(), row.wavelengths) << row.text;
    }
}

TEST(LibraryTable, JcampIsRefusedByName) {
    EXPECT_NE(
        refusal("##TITLE=x\n##JCAMP-DX=4.24\n##XYDATA=(X++(Y..Y))\n4000 0.1 0.2\n3900 0.2 0.3\n##END=\n",
                "x.jdx")
            .find("JCAMP-DX"),
        std::string::npos);
}

} // namespace
} // namespace hsi::raster
