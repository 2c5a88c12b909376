// SPDX-License-Identifier: MIT
// Blocks of compressed GeoTIFFs: the decoder rejects invalid bytes, and restores any samples that the coder
// has compressed.
#include "raster/codec/block_codec.h"
#include "fuzz/fuzz.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace hsi;
    using raster::BlockCoding;
    fuzz::Bytes bytes(data, size);
    BlockCoding coding;
    const uint8_t codec = bytes.take<uint8_t>();
    coding.codec = codec % 4 == 2 ? BlockCoding::Codec::lzw
                   : codec % 2    ? BlockCoding::Codec::zstd
                                  : BlockCoding::Codec::deflate;
    coding.level = static_cast<int>(bytes.take(1, 6));
    coding.by_default = bytes.take<uint8_t>() % 4 != 0;
    raster::BlockForm form;
    form.sample_bytes = int64_t{1} << bytes.take(0, 3);
    const bool floats = form.sample_bytes >= 4 && bytes.take<uint8_t>() % 2;
    coding.predictor = floats                      ? BlockCoding::Predictor::floats
                       : bytes.take<uint8_t>() % 2 ? BlockCoding::Predictor::differences
                                                   : BlockCoding::Predictor::none;
    form.step = bytes.take(1, 3);
    form.line_samples = form.step * bytes.take(1, 300);
    form.lines = bytes.take(1, 70);
    form.swapped = !floats && bytes.take<uint8_t>() % 2;
    if (codec % 8 >= 6 && form.sample_bytes <= 4) { // LERC, alone or with further compression
        using Values = BlockCoding::Values;
        coding.codec = codec % 3 == 0   ? BlockCoding::Codec::none
                       : codec % 3 == 1 ? BlockCoding::Codec::zstd
                                        : BlockCoding::Codec::deflate;
        coding.predictor = BlockCoding::Predictor::none;
        coding.lerc = BlockCoding::Lerc{floats      ? Values::floats
                                        : codec % 5 ? Values::with_sign
                                                    : Values::without_sign};
        if (form.sample_bytes == 4 && !floats) coding.lerc->values = Values::without_sign;
        form.swapped = false;
        form.line_samples /= form.step;
        form.step = 1;
    }
    const auto room = static_cast<size_t>(form.bytes());
    const int64_t lines = bytes.take(1, form.lines);

    raster::BlockDecoder decoder(coding, form);
    std::vector<char> back(room), samples(room);
    const std::string rest = bytes.rest();
    (void)decoder.decode({rest.data(), rest.size()}, lines, back.data());
    // The samples are repetitions of the input, each with larger changes.
    for (size_t i = 0; i < room && size > 0; ++i)
        samples[i] = static_cast<char>(data[i % size] + i / size * (data[0] % 5));
    raster::BlockCoder coder(coding, form);
    const auto stored = coder.encode(samples.data(), lines);
    fuzz::expect(decoder.decode(stored, lines, back.data()), "what was coded can be decoded");
    const auto line_bytes = static_cast<size_t>(form.line_samples * form.sample_bytes);
    const size_t used = static_cast<size_t>(lines) * line_bytes;
    // LERC may change the payload of NaN and the sign of zero, so floats are compared as numbers.
    if (coding.lerc && floats)
        for (size_t i = 0; i < used; i += sizeof(float)) {
            float was = 0, is = 0;
            std::memcpy(&was, &samples[i], sizeof was);
            std::memcpy(&is, &back[i], sizeof is);
            fuzz::expect(was == is || (std::isnan(was) && std::isnan(is)), "and is the number it was");
        }
    else
        fuzz::expect(std::memcmp(samples.data(), back.data(), used) == 0, "and is what it was");
    // A truncated block must be rejected.
    if (stored.size() > 8)
        fuzz::expect(!decoder.decode(stored.first(stored.size() - 5), lines, back.data()),
                     "a part is no block");
    return 0;
}
