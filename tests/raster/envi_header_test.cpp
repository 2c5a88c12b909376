// SPDX-License-Identifier: MIT
#include "raster/metadata/envi_header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hsi::raster {
namespace {

TEST(EnviHeader, ParsesFieldsListsAndComments) {
    const EnviHeader h =
        EnviHeader::parse("ENVI\r\n; a comment = no field\r\nsamples =  5\r\nWavelength  Units= nm\r\n"
                          "\r\nband names = {\r\n a, b ,\r\nc }\r\nbbl={1,0}\r\nno field here\r\n");
    ASSERT_EQ(h.fields().size(), 4u);
    EXPECT_EQ(*h.find("samples"), "5");
    EXPECT_EQ(*h.find("wavelength units"), "nm");
    EXPECT_EQ(envi_list(*h.find("band names")), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(envi_list(*h.find("bbl")), (std::vector<std::string>{"1", "0"}));
    EXPECT_EQ(h.find("lines"), nullptr);
}

TEST(EnviHeader, TextParsesToTheSameFields) {
    EnviHeader h;
    std::vector<std::string> many;
    for (int i = 0; i < 300; ++i)
        many.push_back(std::to_string(400.25 + i));
    h.set("wavelength", envi_list_text(many));
    h.set("description", "{two\nlines}");
    h.set("sensor type", "Unknown");
    h.set("sensor type", "HyMap");
    const EnviHeader again = EnviHeader::parse(h.text());
    ASSERT_EQ(again.fields().size(), 3u);
    EXPECT_EQ(envi_list(*again.find("wavelength")), many);
    EXPECT_EQ(*again.find("description"), "{two\nlines}");
    EXPECT_EQ(*again.find("sensor type"), "HyMap");
    EXPECT_EQ(h.text().rfind("ENVI\n", 0), 0u);
}

/// A header of three bands with the text, and the resulting field; empty if the header cannot be read.
struct ListCase {
    const char *text, *key;
    std::vector<std::string> list;
};

TEST(EnviHeader, ListsOfOtherPrograms) {
    const std::vector<std::string> nm = {"450.0", "550.5", "650.0"}, marks = {"0", "1", "0"},
                                   abc = {"a", "b", "c"};
    const ListCase cases[] = {
        {"wavelength = [450.0, 550.5, 650.0]", "wavelength", nm},
        {"Wavelength = (450.0, 550.5, 650.0)", "wavelength", nm},
        {"wavelength = [450.0 550.5\n 650.0]", "wavelength", nm},
        {"wavelength = [450.0, ; first\n 550.5, 650.0,]", "wavelength", nm},
        {"wavelength =\n[450.0, 550.5, 650.0]", "wavelength", nm},
        {"wavelength = {[450.0, 550.5, 650.0]}", "wavelength", nm},
        {"wavelength = array([450.0, 550.5,\n       650.0], dtype=float32)", "wavelength", nm},
        {"wavelength = [np.float64(450.0), np.float64(550.5), np.float64(650.0)]", "wavelength", nm},
        {"wavelength = ['450.0', '550.5', '650.0']", "wavelength", nm},
        {"wavelength = [[450.0 550.5 650.0]]", "wavelength", nm},
        {"wavelength = {450.0 550.5 650.0}", "wavelength", nm},
        {"wavelength = {450.0; 550.5; 650.0}", "wavelength", nm},
        {"wavelength = {450.0\n550.5\n650.0}", "wavelength", nm},
        {"wavelength = 450.0, 550.5, 650.0", "wavelength", nm},
        {"wavelength = 450.0, 550.5,\n650.0", "wavelength", nm},
        {"wavelength = 450.0\n550.5\n650.0", "wavelength", nm},
        {"wavelength =\n450.0 550.5 650.0", "wavelength", nm},
        {"wavelength = 450.0 550.5 650.0,", "wavelength", nm},
        {"fwhm = [450.0 550.5 650.0] ; widths", "fwhm", nm},
        {"bbl = [0 1 0]", "bbl", marks},
        {"bbl = (0, 1, 0)", "bbl", marks},
        {"BBL = 0 1 0", "bbl", marks},
        {"bbl = [False, True, False]", "bbl", {"False", "True", "False"}},
        {"default bands = [3, 2, 1]", "default bands", {"3", "2", "1"}},
        {"data gain values = 0.0001", "data gain values", {"0.0001", "0.0001", "0.0001"}},
        {"data gain values = {0.0001}", "data gain values", {"0.0001", "0.0001", "0.0001"}},
        {"Data Gain Values = [1e-4]", "data gain values", {"1e-4", "1e-4", "1e-4"}},
        {"data offset values = {5}", "data offset values", {"5", "5", "5"}},
        {"data reflectance gain values = 2", "data reflectance gain values", {"2", "2", "2"}},
        {"band names = ['a', 'b', 'c']", "band names", abc},
        {"band names = ('a', \"b\", 'c',)", "band names", abc},
        {"band names = ['a' 'b'\n 'c']", "band names", abc},
        {"band names = [a, b, c]", "band names", abc},
        {"band names = a, b, c", "band names", abc},
        {"band names = a, b,\n c", "band names", abc},
        {"band names = array(['a', 'b', 'c'], dtype='<U1')", "band names", abc},
        {"classes = 3\nclass names = [a, 'b, (of b)', c]", "class names", {"a", "b, (of b)", "c"}},
        {"class lookup = [(0, 0, 0), (255, 0, 0)]", "class lookup", {"0", "0", "0", "255", "0", "0"}},
        {"class lookup = [[0 0 0]\n [255 0 0]]", "class lookup", {"0", "0", "0", "255", "0", "0"}},
        {"map info = [UTM, 1, 1, 5, 6, 2, 2, 11, North, WGS-84]",
         "map info",
         {"UTM", "1", "1", "5", "6", "2", "2", "11", "North", "WGS-84"}},
        {"map info = UTM, 1, 1, 5, 6, 2, 2, 11, North, WGS-84",
         "map info",
         {"UTM", "1", "1", "5", "6", "2", "2", "11", "North", "WGS-84"}},
        {"wavelength = Index([450.0, 550.5, 650.0], dtype='float64')", "wavelength", nm},
        {"wavelength = {450.0 550.5, 650.0}", "wavelength", nm},
        {"wavelength = {4.500D+02, 550.5, 650.0}", "wavelength", {"4.500E+02", "550.5", "650.0"}},
        {"fwhm = 450.0", "fwhm", {"450.0", "450.0", "450.0"}},
        {"band names = Index(['a', 'b', 'c'], dtype='object')", "band names", abc},
        {"band names = {a; b; c}", "band names", abc},
        {"band names = {a\nb\nc}", "band names", abc},
        {"band names = {a, b, c, d}", "band names", {}},
        {"classes = 2\nclass names = {a, b, c}", "class names", {}},
        {"classes = 2\nclass lookup = {0 0 0, 255 0 0}", "class lookup", {"0", "0", "0", "255", "0", "0"}},
        {"classes = 2\nclass lookup = {0, 0, 0, 255, 0}", "class lookup", {}},
        {"data ignore value = {7, 8, 7}", "data ignore value", {}},
        {"wavelength = [450. 460. ... 650.]", "wavelength", {}},
        {"wavelength = {[450. 460. ... 650.]}", "wavelength", {}},
        {"wavelength = [450.0, 550.5, 650.0", "wavelength", {}},
    };
    for (const ListCase& c : cases) {
        const EnviHeader h =
            EnviHeader::parse("ENVI\nbands = 3\n" + std::string(c.text) + "\nsensor type = HyMap\n");
        EXPECT_EQ(h.unreadable().size(), c.list.empty() ? 1u : 0u) << c.text;
        EXPECT_EQ(*h.find("sensor type"), "HyMap") << c.text;
        const std::string* const value = h.find(c.key);
        ASSERT_EQ(value != nullptr, !c.list.empty()) << c.text;
        if (value == nullptr) continue;
        EXPECT_EQ(envi_list(*value), c.list) << c.text << " -> " << *value;
    }
}

TEST(EnviHeader, WhatIsNoListOfAnotherProgramStays) {
    for (const char* value :
         {"{450.0, 550.5, 650.0}", "{450 nm, 550 nm}", "{450.0, ; first\n550.5}", "unknown", "550"}) {
        const EnviHeader h =
            EnviHeader::parse("bands = 3\nwavelength = " + std::string(value) + "\nlines = 2\n");
        EXPECT_EQ(*h.find("wavelength"), value);
        EXPECT_EQ(*h.find("lines"), "2");
    }
    for (const char* value : {"(c) 2020, somebody", "[a] b", "{[Mon Jan 1 2020] a scene}"})
        EXPECT_EQ(*EnviHeader::parse("description = " + std::string(value)).find("description"), value);
}

TEST(EnviHeader, ClassNamesWithCommas) {
    const std::vector<std::string> names = {"Unclassified", "Corn, young", "Soil \"a\", dry", "Plain"};
    EnviHeader h = EnviHeader::parse("class names = {Unclassified, Corn  young, Soil \"a\"  dry, Plain}");
    set_quoted_class_names(h, names);
    EXPECT_EQ(envi_class_names(EnviHeader::parse(h.text())), names);
    // A change of the field that every reader uses replaces the names.
    h.set("class names", "{Unclassified, Maize, Soil, Plain}");
    EXPECT_EQ(envi_class_names(h)[1], "Maize");
    set_quoted_class_names(h, {"Unclassified", "Corn"});
    EXPECT_EQ(h.find(quoted_names_field), nullptr);
    EXPECT_EQ(envi_class_names(EnviHeader::parse("class names = {a, \"b, c\", 'd, e'}")),
              (std::vector<std::string>{"a", "b, c", "d, e"}));
}

TEST(EnviHeader, AnUnclosedListEndsWithTheText) {
    const EnviHeader h = EnviHeader::parse("a = {1, 2\n3");
    EXPECT_EQ(*h.find("a"), "{1, 2\n3");
    EXPECT_TRUE(envi_list(*h.find("a")).empty());
}

TEST(EnviHeader, KeysMeetWhateverTheirBlanks) {
    EnviHeader h = EnviHeader::parse("ENVI\nWavelength_Units = nm\n\tdata\ttype = 4\n");
    EXPECT_EQ(*h.find("wavelength units"), "nm");
    EXPECT_EQ(*h.find("data type"), "4");
    h.set("wavelength units", "um");
    EXPECT_EQ(h.fields().size(), 2u);
}

TEST(EnviHeader, CommentsAreNoPartOfALine) {
    const EnviHeader h = EnviHeader::parse("ENVI\rbbl = {\r; 1, 2 }\r1,0} ; good\rbyte order = 1 ; IEEE\r");
    EXPECT_EQ(envi_list(*h.find("bbl")), (std::vector<std::string>{"1", "0"}));
    EXPECT_EQ(*h.find("byte order"), "1");
}

TEST(EnviHeader, LinesOfAnyEncoding) {
    const EnviHeader h = EnviHeader::parse("\xef\xbb\xbf"
                                           "ENVI\na = Gr\xfcn\nb = Gr\xc3\xbcn\nc = 5 \x80\n");
    EXPECT_EQ(*h.find("a"), "Gr\xc3\xbcn");
    EXPECT_EQ(*h.find("b"), "Gr\xc3\xbcn");
    EXPECT_EQ(*h.find("c"), "5 \xe2\x82\xac");
}

TEST(EnviHeader, ByteOrderMarksWithinJoinedTexts) {
    const EnviHeader header = EnviHeader::parse("ENVI\n\xef\xbb\xbf samples = 3\nmap info = {UTM,\n"
                                                "\xef\xbb\xbf\xef\xbb\xbf 1, 1}\n\xef\xbb\xbf; lines = 4\n");
    ASSERT_EQ(header.fields().size(), 2u);
    EXPECT_EQ(*header.find("samples"), "3");
    EXPECT_EQ(*header.find("map info"), "{UTM,\n1, 1}");
}

TEST(EnviHeader, BracesWithinBracesStayAsTheyAre) {
    const EnviHeader header = EnviHeader::parse("data ignore value = {{1, {2}3}\nbands = {{ 4 }}\n");
    EXPECT_EQ(*header.find("data ignore value"), "{{1, {2}3}");
    EXPECT_EQ(*header.find("bands"), "4");
    EXPECT_EQ(*EnviHeader::parse(header.text()).find("data ignore value"), "{{1, {2}3}");
}

TEST(EnviHeader, LastOfTheSameKeyCounts) {
    const EnviHeader h = EnviHeader::parse("lines = 1\nlines = 2\nbands = 3\nbands = 3.0\n");
    EXPECT_EQ(*h.find("lines"), "2");
    EXPECT_EQ(h.repeated(), std::vector<std::string>{"lines"}) << "3.0 is 3";
}

TEST(EnviHeader, LinesThatGdalCanRead) {
    EnviHeader h;
    std::string words, one(25000, 'x');
    for (int i = 0; i < 5000; ++i)
        words += "word" + std::to_string(i) + " ";
    words.pop_back();
    std::vector<std::string> list;
    for (int i = 0; i < 3000; ++i)
        list.push_back(std::to_string(400.5 + i));
    std::string line = "{";
    for (const std::string& v : list)
        line += v + ",";
    line.back() = '}';
    h.set("history", words);
    h.set("wavelength", line);
    h.set("checksum", one);
    const std::string text = h.text();
    size_t longest = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = text.find('\n', at);
        longest = std::max(longest, end - at);
        at = end + 1;
    }
    EXPECT_LE(longest, longest_gdal_line);
    const EnviHeader again = EnviHeader::parse(text);
    EXPECT_EQ(envi_list(*again.find("wavelength")), list);
    std::string back = *again.find("history");
    std::replace(back.begin(), back.end(), '\n', ' ');
    EXPECT_EQ(back, "{" + words + "}");
    EXPECT_EQ(again.find("checksum")->size(), one.size() + 2 + 3) << "cut three times, in braces";
}

TEST(EnviNumber, OneNumberAndNothingElse) {
    for (const char* text : {"450.5", " 450.5 ", "\"450.5\"", "'450.5'", "450,5", "4505e-1", "450.5 ; blue"})
        EXPECT_EQ(envi_number(text), 450.5) << text;
    for (const char* text : {"", "N/A", "nan", "inf", "450 nm", "1,000", "1,0,0", "450.5.1", "-"})
        EXPECT_FALSE(envi_number(text)) << text;
}

TEST(EnviList, Quotes) {
    EXPECT_EQ(envi_list("{\"a, b\", 'c', 5' deep, \"d}"),
              (std::vector<std::string>{"a, b", "c", "5' deep", "\"d"}));
}

TEST(EnviList, EdgeCases) {
    EXPECT_TRUE(envi_list("{}").empty());
    EXPECT_TRUE(envi_list("5").empty());
    EXPECT_EQ(envi_list("{5}"), std::vector<std::string>{"5"});
    EXPECT_EQ(envi_list("{5, }"), std::vector<std::string>{"5"});
    EXPECT_EQ(envi_key("Wavelength_Units "), "wavelength units");
}

} // namespace
} // namespace hsi::raster
