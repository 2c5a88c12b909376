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
