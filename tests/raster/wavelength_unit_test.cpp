// SPDX-License-Identifier: MIT
// Units of wavelengths in headers, columns and titles.
#include "raster/metadata/wavelength_unit.h"

#include "raster/metadata/envi_header.h"
#include "raster/metadata/spectral_metadata.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hsi::raster {
namespace {

std::string symbol(const WavelengthUnit* unit) { return unit == nullptr ? "" : unit->symbol; }

TEST(WavelengthUnit, NumbersAreWrittenWithUnits) {
    struct Row {
        const char *text, *number, *symbol;
    };
    const Row rows[] = {{"450 nm", "450", "nm"},
                        {"450nm", "450", "nm"},
                        {" (450.5 nm) ", "450.5", "nm"},
                        {"450 [nm]", "450", "nm"},
                        {"0,45 um", "0.45", "um"},
                        {"0.45 \xc2\xb5m", "0.45", "um"},
                        {"4.5e-7 m", "4.5e-7", "m"},
                        {"2.75 eV", "2.75", "eV"},
                        {"22222 cm-1", "22222", "cm-1"},
                        {"22222 1/cm", "22222", "cm-1"},
                        {"22222 inverse cm", "22222", "cm-1"},
                        {"-1 nm", "-1", "nm"},
                        {"450", "", ""},
                        {"", "", ""},
                        {"nm", "", ""},
                        {"nanometers", "", ""},
                        {"450 10 nm", "", ""},
                        {"450 550 nm", "", ""},
                        {"450,550,650 nm", "", ""},
                        {"450 apples", "", ""},
                        {"1,234.5 nm", "", ""},
                        {"450 W/m2/sr/um", "", ""}};
    for (const Row& row : rows) {
        const auto written = written_wavelength(row.text);
        EXPECT_EQ(written ? written->number : "", row.number) << row.text;
        EXPECT_EQ(symbol(written ? written->unit : nullptr), row.symbol) << row.text;
    }
}

TEST(WavelengthUnit, FieldsStateOneUnit) {
    const std::pair<const char*, const char*> cases[] = {
        {"Nanometers", "nm"},
        {"[nm]", "nm"},
        {"nan\xc3\xb3metros", "nm"},
        {"Nanometers (nm)", "nm"},
        {"Micrometers", "um"},
        {"microns", "um"},
        {"\xc2\xb5m", "um"},
        {"\xce\xbcm", "um"},
        {"{um}", "um"},
        {"Mikrometer", "um"},
        {"millimeters", "mm"},
        {"cm", "cm"},
        {"m", "m"},
        {"Meters", "m"},
        {"A", "angstrom"},
        {"Angstroms", "angstrom"},
        {"\xc3\x85ngstr\xc3\xb6m", "angstrom"},
        {"\xe2\x84\xab", "angstrom"},
        {"Wavenumber", "cm-1"},
        {"wave numbers", "cm-1"},
        {"1/cm", "cm-1"},
        {"cm^-1", "cm-1"},
        {"cm\xe2\x81\xbb\xc2\xb9", "cm-1"},
        {"cm\xe2\x88\x92\x31", "cm-1"},
        {"cm^{-1}", "cm-1"},
        {"inverse centimetres", "cm-1"},
        {"kayser", "cm-1"},
        {"wn", "cm-1"},
        {"m-1", "m-1"},
        {"1/m", "m-1"},
        {"um^-1", "um-1"},
        {"Hz", "Hz"},
        {"MHz", "MHz"},
        {"Gigahertz", "GHz"},
        {"terahertz", "THz"},
        {"eV", "eV"},
        {"meV", "meV"},
        {"MeV", "MeV"},
        {"keV", "keV"},
        {"electronvolts", "eV"},
        {"Index", ""},
        {"", ""},
        {"counts", ""},
        {"W/m2/sr/um", ""},
        {"W m-2 sr-1 nm-1", ""},
        {"Wavelength (um)", "um"},
        {"%", ""},
        {"1e-9 m", "nm"},
        {"1.e-6 m", "um"},
        {"10^-9 m", "nm"},
        {"10**-6 m", "um"},
        {"1e-4 cm", "um"},
        {"1e-10 m", "angstrom"},
        {"100 m-1", "cm-1"},
        {"1e12 Hz", "THz"},
        {"10 nm", "10 nm"},
        {"100 nm", "100 nm"},
        {"1e-8 m", "10 nm"},
        {"0.1 um", "100 nm"},
        {"100 m", ""},
        {"3 nm", ""},
        {"0 nm", ""},
        {"10^ m", ""},
        {"1e-9", ""},
    };
    for (const auto& [text, unit] : cases)
        EXPECT_EQ(symbol(field_unit(text)), unit) << text;
}

TEST(WavelengthUnit, LongerTextsStateAUnitAmongOtherWords) {
    const std::pair<const char*, const char*> cases[] = {
        {"Wavelength (um)", "um"},
        {"wl_nm", "nm"},
        {"Wavelength [A]", "angstrom"},
        {"wavelength_m", "m"},
        {"Wavelength in m", "m"},
        {"Wavelength (?m)", ""}, // a character was lost
        {"Wavenumbers (cm-1)", "cm-1"},
        {"Wavenumber (nm)", "nm"},
        {"wavenumber..cm.1.", "cm-1"},
        {"\xce\xbb / nm", "nm"},
        {"Energy (eV)", "eV"},
        {"Frequency, THz", "THz"},
        {"Wavelength", ""},
        {"Raman shift (cm-1)", ""},
        {"Relative wavenumber (cm-1)", ""},
        {"Frequency", ""},
        {"Energy", ""},
        {"site A", ""},
        {"m", ""},
    };
    for (const auto& [text, unit] : cases)
        EXPECT_EQ(symbol(text_unit(text)), unit) << text;
    for (const char* text : {"Raman shift", "Shift / cm-1", "Frequency", "photon energy"})
        EXPECT_TRUE(is_other_axis(text)) << text;
    for (const char* text : {"Wavelength", "Energy (eV)", "frequency GHz", "wavenumber", "soil"})
        EXPECT_FALSE(is_other_axis(text)) << text;
}

TEST(WavelengthUnit, NumbersBecomeNanometres) {
    const std::tuple<double, const char*, double> cases[] = {
        {0.5, "um", 500},        {5e-7, "m", 500},          {5e-4, "mm", 500},    {5e-5, "cm", 500},
        {5000, "angstrom", 500}, {20000, "cm-1", 500},      {2e6, "1/m", 500},    {2, "um-1", 500},
        {300, "THz", 999.308},   {299792.458, "GHz", 1000}, {2.5, "eV", 495.937}, {1, "keV", 1.23984},
    };
    for (const auto& [number, unit, nm] : cases)
        EXPECT_NEAR(field_unit(unit)->nanometres(number), nm, 1e-5 * nm) << unit;
}

TEST(WavelengthUnit, WhatIsAssumedIsTold) {
    EXPECT_EQ(chosen_unit("um", 0.4, 2.5).note, "");
    const std::tuple<const char*, double, const char*, const char*> assumed[] = {
        {"", 2500, "nm", "nanometres are assumed (400 to 2500)"},
        {"Unknown", 2.5, "um", "micrometres are assumed"},
        {"-", 2.5e-6, "m", "metres are assumed"},
    };
    for (const auto& [field, largest, unit, words] : assumed) {
        const UnitChoice choice = chosen_unit(field, 400, largest);
        EXPECT_EQ(symbol(choice.unit), unit);
        EXPECT_NE(choice.note.find(words), std::string::npos) << choice.note;
    }
    EXPECT_EQ(symbol(chosen_unit("nm", 0.4, 2.5).unit), "um");
    EXPECT_NE(chosen_unit("nm", 0.4, 2.5).note.find("read as micrometres"), std::string::npos);
    EXPECT_EQ(chosen_unit("Raman shift", 200, 3000).unit, nullptr);
    EXPECT_NE(chosen_unit("Index", 1, 9).note.find("'Index' is not a unit"), std::string::npos);
}

TEST(WavelengthUnit, WavelengthsThatNoInstrumentMeasuresAreTold) {
    EXPECT_EQ(doubtful_wavelengths({100, 500, NAN, 1e5}), "");
    EXPECT_NE(doubtful_wavelengths({500, 4e11, 5e11}).find("band 2 is read as 4e+11 nm (and 1 more"),
              std::string::npos);
    EXPECT_NE(doubtful_wavelengths({0.18}, {7}).find("band 7 is read as 0.18 nm, which"), std::string::npos);
}

TEST(WavelengthUnit, HeadersOfEnviStateItInTwoFields) {
    const auto unit_of = [](const std::string& fields) {
        return envi_wavelength_unit(EnviHeader::parse("ENVI\n" + fields));
    };
    EXPECT_EQ(unit_of("wavelength units = Micrometers\n"), "Micrometers");
    EXPECT_EQ(unit_of("z plot titles = {Wavenumbers (cm-1), %Transmittance}\n"), "Wavenumber");
    EXPECT_EQ(unit_of("wavelength units = Unknown\nz plot titles = {Wavelength (um), Value}\n"),
              "Micrometers");
    EXPECT_EQ(unit_of("wavelength units = nm\nz plot titles = {Wavenumbers (cm-1), Value}\n"), "nm");
    EXPECT_EQ(unit_of("z plot titles = {Raman shift (cm-1), Counts}\n"), "Raman shift (cm-1)");
    EXPECT_EQ(unit_of("z plot titles = {Wavelength, Value}\n"), "");
}

} // namespace
} // namespace hsi::raster
