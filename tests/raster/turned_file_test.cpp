// SPDX-License-Identifier: MIT
#include "raster/matlab/turned_file.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hsi::raster {
namespace {

/// Writes values that equal their position in the array, in pieces of uneven sizes.
template <class T>
class Counting final : public MatlabFile {
  public:
    Counting() : MatlabFile("counting.mat", "5") {}
    void read(const MatlabVariable& variable, const Take& take) const override {
        std::vector<T> values(static_cast<size_t>(variable.count()));
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<T>(i);
        for (size_t at = 0, piece = 1; at < values.size(); at += piece, piece = piece * 3 % 101) {
            piece = std::min(piece, values.size() - at);
            take(reinterpret_cast<const char*>(values.data() + at), piece);
        }
    }
    std::vector<std::string> texts(const MatlabVariable&) const override { return {}; }
};

template <class T>
void expect_turned(GDALDataType type) {
    constexpr int64_t lines = 5, samples = 7, bands = 6;
    for (const BandsStand stand : {BandsStand::last, BandsStand::first, BandsStand::second})
        for (const int64_t memory : {int64_t{1}, int64_t{17}, int64_t{64}, int64_t{300}, int64_t{1} << 20}) {
            MatlabVariable variable;
            variable.dims = {lines, samples, bands};
            variable.type = type;
            TurnedFile turned(std::make_shared<Counting<T>>(), variable, {lines, samples, bands, stand},
                              memory);
            std::vector<T> values(samples);
            for (int64_t band = 0; band < bands; ++band)
                for (int64_t line = 0; line < lines; ++line) {
                    turned.read_line(band, line, values.data());
                    for (int64_t sample = 0; sample < samples; ++sample) {
                        const int64_t at = stand == BandsStand::first ? band + bands * (line + lines * sample)
                                           : stand == BandsStand::second
                                               ? line + lines * (band + bands * sample)
                                               : line + lines * (sample + samples * band);
                        ASSERT_EQ(values[static_cast<size_t>(sample)], static_cast<T>(at))
                            << memory << " bytes, band " << band << ", line " << line << ", sample "
                            << sample;
                    }
                }
        }
}

TEST(TurnedFile, PutsEverySampleInItsPlaceWhateverMemoryHolds) {
    expect_turned<uint8_t>(GDT_Byte);
    expect_turned<int16_t>(GDT_Int16);
    expect_turned<float>(GDT_Float32);
    expect_turned<double>(GDT_Float64);
}

} // namespace
} // namespace hsi::raster
