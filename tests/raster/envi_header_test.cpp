// SPDX-License-Identifier: MIT
#include "raster/envi_header.h"

#include <gtest/gtest.h>

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

TEST(EnviList, EdgeCases) {
    EXPECT_TRUE(envi_list("{}").empty());
    EXPECT_TRUE(envi_list("5").empty());
    EXPECT_EQ(envi_list("{5}"), std::vector<std::string>{"5"});
    EXPECT_EQ(envi_list("{5, }"), std::vector<std::string>{"5"});
    EXPECT_EQ(envi_key("Wavelength_Units "), "wavelength units");
}

} // namespace
} // namespace hsi::raster
