// SPDX-License-Identifier: MIT
#include "math/elementary.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hsi::math {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

/// A number as the sum of two doubles. The second double is less than half a unit in the last place of the
/// first.
struct Parts {
    double high, low;
};

/// 2^(j/32) for j = 0 .. 31.
constexpr Parts exp_table[] = {{0x1.0000000000000p+0, 0x0.0p+0},
                               {0x1.059b0d3158574p+0, 0x1.d73e2a475b465p-55},
                               {0x1.0b5586cf9890fp+0, 0x1.8a62e4adc610bp-54},
                               {0x1.11301d0125b51p+0, -0x1.6c51039449b3ap-54},
                               {0x1.172b83c7d517bp+0, -0x1.19041b9d78a76p-55},
                               {0x1.1d4873168b9aap+0, 0x1.e016e00a2643cp-54},
                               {0x1.2387a6e756238p+0, 0x1.9b07eb6c70573p-54},
                               {0x1.29e9df51fdee1p+0, 0x1.612e8afad1255p-55},
                               {0x1.306fe0a31b715p+0, 0x1.6f46ad23182e4p-55},
                               {0x1.371a7373aa9cbp+0, -0x1.63aeabf42eae2p-54},
                               {0x1.3dea64c123422p+0, 0x1.ada0911f09ebcp-55},
                               {0x1.44e086061892dp+0, 0x1.89b7a04ef80d0p-59},
                               {0x1.4bfdad5362a27p+0, 0x1.d4397afec42e2p-56},
                               {0x1.5342b569d4f82p+0, -0x1.07abe1db13cadp-55},
                               {0x1.5ab07dd485429p+0, 0x1.6324c054647adp-54},
                               {0x1.6247eb03a5585p+0, -0x1.383c17e40b497p-54},
                               {0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54},
                               {0x1.71f75e8ec5f74p+0, -0x1.16e4786887a99p-55},
                               {0x1.7a11473eb0187p+0, -0x1.41577ee04992fp-55},
                               {0x1.82589994cce13p+0, -0x1.d4c1dd41532d8p-54},
                               {0x1.8ace5422aa0dbp+0, 0x1.6e9f156864b27p-54},
                               {0x1.93737b0cdc5e5p+0, -0x1.75fc781b57ebcp-57},
                               {0x1.9c49182a3f090p+0, 0x1.c7c46b071f2bep-56},
                               {0x1.a5503b23e255dp+0, -0x1.d2f6edb8d41e1p-54},
                               {0x1.ae89f995ad3adp+0, 0x1.7a1cd345dcc81p-54},
                               {0x1.b7f76f2fb5e47p+0, -0x1.5584f7e54ac3bp-56},
                               {0x1.c199bdd85529cp+0, 0x1.11065895048ddp-55},
                               {0x1.cb720dcef9069p+0, 0x1.503cbd1e949dbp-56},
                               {0x1.d5818dcfba487p+0, 0x1.2ed02d75b3707p-55},
                               {0x1.dfc97337b9b5fp+0, -0x1.1a5cd4f184b5cp-54},
                               {0x1.ea4afa2a490dap+0, -0x1.e9c23179c2893p-54},
                               {0x1.f50765b6e4540p+0, 0x1.9d3e12dd8a18bp-54}};

/// `inverse` is 1/c, rounded to nine bits. high + low is log c; `high` has no bit below 2^-42.
struct Logarithm {
    double inverse, high, low;
};

/// Entries for 64 intervals of [0.6875, 1.375), with c near the middle of each; c is 1 for intervals near 1,
/// where the logarithm is small.
constexpr Logarithm log_table[] = {{0x1.7280000000000p+0, -0x1.7a8c586cdf000p-2, -0x1.5107d6a24fe80p-44},
                                   {0x1.6e00000000000p+0, -0x1.6e08eaa2ba000p-2, -0x1.e38c139318d71p-46},
                                   {0x1.6a00000000000p+0, -0x1.62c82f2b9c000p-2, -0x1.e54bdbd7c8a98p-44},
                                   {0x1.6600000000000p+0, -0x1.5767717456000p-2, 0x1.64ead9524d7cap-44},
                                   {0x1.6200000000000p+0, -0x1.4be5f95778000p-2, 0x1.d7c92cd9ad824p-44},
                                   {0x1.5e80000000000p+0, -0x1.41b941cce1000p-2, 0x1.0469013e43fc9p-44},
                                   {0x1.5b00000000000p+0, -0x1.3772662bfe000p-2, 0x1.e9436ac53b023p-44},
                                   {0x1.5700000000000p+0, -0x1.2b9303ab8a000p-2, 0x1.6db12d6bfb0a5p-45},
                                   {0x1.5380000000000p+0, -0x1.2112559861000p-2, -0x1.82e78ba2950c4p-44},
                                   {0x1.5000000000000p+0, -0x1.1675cababa000p-2, -0x1.8380e731f55c4p-44},
                                   {0x1.4c80000000000p+0, -0x1.0bbccdb0d2000p-2, -0x1.2f32ccc5dcdfbp-44},
                                   {0x1.4980000000000p+0, -0x1.0274dc16c2000p-2, -0x1.979e89cf835c2p-45},
                                   {0x1.4600000000000p+0, -0x1.ef0adcbdc6000p-3, 0x1.b26b79c86af24p-45},
                                   {0x1.4300000000000p+0, -0x1.dc1bca0abe000p-3, -0x1.8fac1a628ccc6p-44},
                                   {0x1.3f80000000000p+0, -0x1.c5cba543ae000p-3, -0x1.0929decb454fcp-45},
                                   {0x1.3c80000000000p+0, -0x1.b2797ee464000p-3, 0x1.be88a906d00a9p-44},
                                   {0x1.3980000000000p+0, -0x1.9ef83d276a000p-3, 0x1.730b7b3f9ce00p-45},
                                   {0x1.3680000000000p+0, -0x1.8b46f82236000p-3, -0x1.2d9f2102dd7c9p-46},
                                   {0x1.3380000000000p+0, -0x1.7764c128f2000p-3, -0x1.274903479e3d1p-47},
                                   {0x1.3100000000000p+0, -0x1.66acd4272a000p-3, -0x1.aa1bdbfc6c785p-44},
                                   {0x1.2e00000000000p+0, -0x1.526e5e3a1c000p-3, 0x1.790ba37fc5238p-44},
                                   {0x1.2b80000000000p+0, -0x1.41682bf728000p-3, 0x1.10047081f849dp-45},
                                   {0x1.2880000000000p+0, -0x1.2cca0f5f60000p-3, 0x1.b5ef191aff120p-44},
                                   {0x1.2600000000000p+0, -0x1.1b72ad52f6000p-3, -0x1.e80a41811a396p-45},
                                   {0x1.2380000000000p+0, -0x1.09f561ee72000p-3, 0x1.8f3057157d1a8p-45},
                                   {0x1.2080000000000p+0, -0x1.e98b549670000p-4, -0x1.4677489c50e97p-44},
                                   {0x1.1e00000000000p+0, -0x1.c5e548f5bc000p-4, -0x1.d0c57585fbe06p-46},
                                   {0x1.1b80000000000p+0, -0x1.a1ef1d8060000p-4, -0x1.cd4176df97bcbp-44},
                                   {0x1.1980000000000p+0, -0x1.84ef898e84000p-4, 0x1.7d5cd246977c9p-44},
                                   {0x1.1700000000000p+0, -0x1.60658a9374000p-4, -0x1.0c3b1dee9c4f8p-44},
                                   {0x1.1480000000000p+0, -0x1.3b87598b1c000p-4, 0x1.2241594aca313p-45},
                                   {0x1.1200000000000p+0, -0x1.16536eea38000p-4, 0x1.47c5e768fa309p-46},
                                   {0x1.1000000000000p+0, -0x1.f0a30c0118000p-5, 0x1.d599e83368e91p-45},
                                   {0x1.0d80000000000p+0, -0x1.a4fe9ffa40000p-5, 0x1.6e584a0402925p-44},
                                   {0x1.0b80000000000p+0, -0x1.67f94f0948000p-5, -0x1.ecc1f3e7e4ed7p-44},
                                   {0x1.0980000000000p+0, -0x1.2a7ec22150000p-5, 0x1.78ce77a9163fep-45},
                                   {0x1.0700000000000p+0, -0x1.b9fc027b00000p-6, 0x1.b9a010ae6922ap-44},
                                   {0x1.0500000000000p+0, -0x1.3cea443470000p-6, 0x1.6a2c432d6a40bp-44},
                                   {0x1.0300000000000p+0, -0x1.7dc475f820000p-7, 0x1.eb1245b5da1f5p-44},
                                   {0x1.0000000000000p+0, 0x0.0p+0, 0x0.0p+0},
                                   {0x1.0000000000000p+0, 0x0.0p+0, 0x0.0p+0},
                                   {0x1.f400000000000p-1, 0x1.8492528c90000p-6, -0x1.aa0ba325a0c34p-45},
                                   {0x1.ed00000000000p-1, 0x1.35c8bfaa10000p-5, 0x1.8357d5ef9eb35p-44},
                                   {0x1.e500000000000p-1, 0x1.bbcebfc690000p-5, -0x1.7bf868c317c2ap-46},
                                   {0x1.de00000000000p-1, 0x1.1973bd1464000p-4, 0x1.566d154f930b3p-44},
                                   {0x1.d700000000000p-1, 0x1.55e10050e0000p-4, 0x1.c1d740c53c72ep-47},
                                   {0x1.d100000000000p-1, 0x1.8a6477a91c000p-4, 0x1.c28c0af9bd6dfp-44},
                                   {0x1.ca00000000000p-1, 0x1.c885801bc4000p-4, 0x1.646d1c65aacd3p-45},
                                   {0x1.c400000000000p-1, 0x1.fe89139dbc000p-4, 0x1.56594d82f7a82p-44},
                                   {0x1.be00000000000p-1, 0x1.1aa2b7e240000p-3, -0x1.1ac38dde3b366p-44},
                                   {0x1.b800000000000p-1, 0x1.365fcb015a000p-3, -0x1.fd3a0afb9691bp-44},
                                   {0x1.b200000000000p-1, 0x1.527e5e4a1c000p-3, -0x1.4e60b8d4b411dp-44},
                                   {0x1.ac00000000000p-1, 0x1.6f0128b756000p-3, 0x1.577390d31ef0fp-44},
                                   {0x1.a700000000000p-1, 0x1.871213750e000p-3, 0x1.328eb42f9af75p-44},
                                   {0x1.a100000000000p-1, 0x1.a454082e6a000p-3, 0x1.60a77c81f7171p-44},
                                   {0x1.9c00000000000p-1, 0x1.bd087383be000p-3, -0x1.d4bc4595412b6p-45},
                                   {0x1.9700000000000p-1, 0x1.d60a17f904000p-3, -0x1.5d6e06fc20d39p-44},
                                   {0x1.9200000000000p-1, 0x1.ef5ade4dd0000p-3, -0x1.a211565bb8e11p-51},
                                   {0x1.8d00000000000p-1, 0x1.047e60cde8000p-2, 0x1.dbdf10d397f3cp-45},
                                   {0x1.8800000000000p-1, 0x1.1178e8227e000p-2, 0x1.1ef78ce2d07f2p-44},
                                   {0x1.8400000000000p-1, 0x1.1bf99635a7000p-2, -0x1.1ac89575c2125p-44},
                                   {0x1.7f00000000000p-1, 0x1.2941afb187000p-2, -0x1.210c2b730e28bp-44},
                                   {0x1.7b00000000000p-1, 0x1.3401e12aed000p-2, -0x1.17c73556e291dp-44},
                                   {0x1.7600000000000p-1, 0x1.419b423d5f000p-2, -0x1.ce379226de3ecp-44}};

/// atan(k/16) for k = 0 .. 16.
constexpr Parts atan_table[] = {{0x0.0p+0, 0x0.0p+0},
                                {0x1.ff55bb72cfdeap-5, -0x1.c934d86d23f1dp-60},
                                {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
                                {0x1.7b97b4bce5b02p-3, 0x1.347b0b4f881cap-58},
                                {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
                                {0x1.362773707ebccp-2, -0x1.963a544b672d8p-57},
                                {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
                                {0x1.a64eec3cc23fdp-2, -0x1.24dec1b50b7ffp-56},
                                {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
                                {0x1.0657e94db30d0p-1, -0x1.d5b495f6349e6p-56},
                                {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
                                {0x1.345f01cce37bbp-1, 0x1.1021137c71102p-55},
                                {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
                                {0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57},
                                {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
                                {0x1.819d0b7158a4dp-1, -0x1.bf76229d3b917p-56},
                                {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55}};

constexpr Parts half_pi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
constexpr Parts whole_pi{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};

/// Returns a + b exactly, for |a| >= |b| or a = 0.
Parts sum_of(double a, double b) {
    const double s = a + b;
    return {s, a - s + b};
}

/// Returns the 26 leading bits of x, so that products with as many bits are exact; for |x| < 2^990.
double leading_half(double x) {
    const double t = 0x1.0000002p+27 * x; // Veltkamp's splitting
    return t - (t - x);
}

/// Returns a b exactly, by Dekker's product.
Parts product_of(double a, double b) {
    const double p = a * b, ah = leading_half(a), al = a - ah, bh = leading_half(b), bl = b - bh;
    return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

/// Returns the whole number nearest to x, |x| < 2^51.
double nearest(double x) { return (x + 0x1.8p+52) - 0x1.8p+52; }

double power_of_two(int64_t n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

/// Returns exp(x + low), where low is small compared with x.
double exp_of(double x, double low) {
    if (!(x < 709.79)) return x > 0 ? infinity : nothing; // exp(709.78...) is the largest finite result
    if (x < -745.2) return 0;
    // x = (32 k + j) log(2)/32 + r
    const double turns = nearest(x * 0x1.71547652b82fep+5);
    const auto n = static_cast<int64_t>(turns);
    const double r = (x - turns * 0x1.62e42fecp-6) - turns * 0x1.d1cf79abc9e3bp-37 + low;
    const double series =
        r +
        r * r *
            (0.5 + r * (0x1.5555555555555p-3 +
                        r * (0x1.5555555555555p-5 + r * (0x1.1111111111111p-7 + r * 0x1.6c16c16c16c17p-10))));
    const Parts& t = exp_table[n & 31];
    const double value = t.high + (t.low + t.high * series);
    const int64_t k = n >> 5;
    // There are two factors, since the result may be subnormal.
    if (k < -1021) return value * power_of_two(k + 100) * 0x1p-100;
    if (k > 1023) return value * power_of_two(k - 1) * 2;
    return value * power_of_two(k);
}

/// Returns the logarithm of a positive finite number.
Parts log_of(double x) {
    auto bits = std::bit_cast<uint64_t>(x);
    int64_t k = 0;
    if (bits < uint64_t{1} << 52) { // subnormal
        bits = std::bit_cast<uint64_t>(x * 0x1p+54);
        k = -54;
    }
    const uint64_t above = bits - 0x3fe6000000000000u;
    k += static_cast<int64_t>(above) >> 52;
    const double z = std::bit_cast<double>(bits - (above & uint64_t{0xfff} << 52));
    const Logarithm& c = log_table[above >> 46 & 63];
    const double high = leading_half(z);
    const double a = high * c.inverse - 1, b = (z - high) * c.inverse; // both exact
    const Parts r = sum_of(a, b);
    const double v = r.high;
    const double series =
        v * v *
        (-0.5 +
         v * (0x1.5555555555555p-2 +
              v * (-0.25 + v * (0.2 + v * (-0x1.5555555555555p-3 +
                                           v * (0x1.2492492492492p-3 +
                                                v * (-0.125 + v * (0x1.c71c71c71c71cp-4 - v * 0.1))))))));
    const auto turns = static_cast<double>(k);
    const double whole = turns * 0x1.62e42feep-1 + c.high; // exact
    const Parts main = whole == 0 ? Parts{v, 0} : sum_of(whole, v);
    return sum_of(main.high, main.low + (series + (r.low + (turns * 0x1.a39ef35793c76p-33 + c.low))));
}

/// Returns (asin(x) - x) / x for |x| <= 0.5, from z = x^2.
double asin_rest(double z) {
    // The minimax polynomial on [0, 0.25].
    constexpr double c[] = {0x1.5555555555555p-3,  0x1.3333333333388p-4, 0x1.6db6db6dac1e0p-5,
                            0x1.f1c71c7a52ba3p-6,  0x1.6e8ba123e494cp-6, 0x1.1c4efce23019fp-6,
                            0x1.c990ad3d8fdcap-7,  0x1.7b027ee1dd585p-7, 0x1.3b49de7121487p-7,
                            0x1.31622469ce5adp-7,  0x1.8f193743418ffp-9, 0x1.406192d124629p-6,
                            -0x1.3b416bb7d9257p-6, 0x1.e529c6fce9bb4p-6};
    double sum = 0;
    for (int k = 13; k >= 0; --k)
        sum = sum * z + c[k];
    return z * sum;
}

/// Returns asin(sqrt(z)) = high + low for 0 <= z <= 0.25.
Parts asin_of_root(double z) {
    const double s = std::sqrt(z);
    if (s == 0) return {0, 0};
    const double high = leading_half(s), rest = (z - high * high) / (s + high); // sqrt(z) = high + rest
    return {high, rest + s * asin_rest(z)};
}

/// Returns the sine or cosine of r = high + low, |r| <= pi/4.
double sin_of(const Parts& r) {
    constexpr double c[] = {-0x1.5555555555555p-3,  0x1.1111111111111p-7,   -0x1.a01a01a01a01ap-13,
                            0x1.71de3a556c734p-19,  -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33,
                            -0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49};
    const double z = r.high * r.high;
    double sum = 0;
    for (int k = 7; k >= 0; --k)
        sum = sum * z + c[k];
    return r.high + (r.high * z * sum + r.low * (1 - 0.5 * z));
}

double cos_of(const Parts& r) {
    constexpr double c[] = {0x1.5555555555555p-5,   -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16,
                            -0x1.27e4fb7789f5cp-22, 0x1.1eed8eff8d898p-29,  -0x1.93974a8c07c9dp-37,
                            0x1.ae7f3e733b81fp-45};
    const double z = r.high * r.high, half = 0.5 * z, w = 1 - half;
    double sum = 0;
    for (int k = 6; k >= 0; --k)
        sum = sum * z + c[k];
    return w + ((1 - w - half) + (z * z * sum - r.high * r.low));
}

/// Returns x minus the nearest multiple of pi/2, and sets `quarter` to that multiple modulo 4.
Parts quarter_turns(double x, int& quarter) {
    if (std::fabs(x) > 1e5) x = std::remainder(x, 2 * whole_pi.high); // the remainder is exact
    const double n = nearest(x * 0x1.45f306dc9c883p-1);
    quarter = static_cast<int>(static_cast<int64_t>(n) & 3);
    // pi/2 in three parts. The first two have 33 bits, so their products with n are exact.
    const double a = x - n * 0x1.921fb544p+0, b = n * 0x1.0b4611a6p-34, c = n * 0x1.3198a2e037073p-69;
    const double high = a - b, lost = (a - high) - b, r = high + (lost - c);
    return {r, (high - r) + (lost - c)};
}

/// Returns atan(y / x) for 0 <= y, 0 < x, y <= x.
Parts atan_of(double y, double x) {
    const double c = nearest(y / x * 16) / 16;
    const int k = static_cast<int>(16 * c);
    const double u = k == 0 ? y / x : (y - c * x) / (x + c * y), z = u * u; // |u| <= 1/32
    const double series =
        u * z *
        (-0x1.5555555555555p-2 +
         z * (0.2 + z * (-0x1.2492492492492p-3 + z * (0x1.c71c71c71c71cp-4 - z * 0x1.745d1745d1746p-4))));
    return {atan_table[k].high, u + (series + atan_table[k].low)};
}

/// Returns erf(x) = 1 - erfc(x) for |x| < 1, by a series whose terms have the same sign.
double erf_of(double x) {
    double term = x, sum = x;
    for (int k = 1; k < 60 && std::fabs(term) > 1e-18 * std::fabs(sum); ++k) {
        term *= 2 * x * x / (2 * k + 1);
        sum += term;
    }
    return 0x1.20dd750429b6dp+0 * exp(-x * x) * sum;
}

/// Returns erfc(x) for x >= 1. Evaluates the continued fraction from its last term to its first.
double erfc_of(double x) {
    if (x > 27.3) return 0;
    double fraction = 0;
    for (int k = x < 1.5 ? 400 : x < 2.5 ? 150 : 60; k > 0; --k)
        fraction = 0.5 * k / (x + fraction);
    const Parts square = product_of(x, x);
    return exp_of(-square.high, -square.low) / (x + fraction) * 0x1.20dd750429b6dp-1;
}

} // namespace

double exp(double x) { return exp_of(x, 0); }

double log(double x) {
    if (!(x > 0)) return x == 0 ? -infinity : nothing;
    if (x == infinity) return x;
    return log_of(x).high;
}

double log10(double x) { return log(x) * 0x1.bcb7b1526e50ep-2; }

double pow(double x, double y) {
    if (y == 0 || x == 1) return 1;
    if (y == 1 && x >= 0) return x;
    if (!(x >= 0) || std::isnan(y)) return nothing;
    if (x == 0 || x == infinity) return (x == 0) == (y > 0) ? 0 : infinity;
    if (std::isinf(y)) return (x > 1) == (y > 0) ? infinity : 0;
    const Parts l = log_of(x);
    if (const double about = l.high * y; !(std::fabs(about) < 800)) return about > 0 ? infinity : 0;
    // After this check |y| < 2^63, since |log x| >= 2^-53. So product_of() can split y into halves.
    const Parts p = product_of(l.high, y);
    return exp_of(p.high, p.low + l.low * y);
}

double sin(double x) {
    if (!std::isfinite(x)) return nothing;
    int quarter = 0;
    const Parts r = quarter_turns(x, quarter);
    const double value = (quarter & 1) != 0 ? cos_of(r) : sin_of(r);
    return (quarter & 2) != 0 ? -value : value;
}

double cos(double x) {
    if (!std::isfinite(x)) return nothing;
    int quarter = 0;
    const Parts r = quarter_turns(x, quarter);
    const double value = (quarter & 1) != 0 ? sin_of(r) : cos_of(r);
    return quarter == 1 || quarter == 2 ? -value : value;
}

double asin(double x) {
    const double a = std::fabs(x);
    if (!(a <= 1)) return nothing;
    if (a <= 0.5) return x + x * asin_rest(x * x);
    const Parts half = asin_of_root(0.5 * (1 - a)); // asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2))
    const double value = (half_pi.high - 2 * half.high) + (half_pi.low - 2 * half.low);
    return x < 0 ? -value : value;
}

double acos(double x) {
    const double a = std::fabs(x);
    if (!(a <= 1)) return nothing;
    if (a <= 0.5) {
        const Parts first = sum_of(half_pi.high, -x);
        return first.high + (first.low + (half_pi.low - x * asin_rest(x * x)));
    }
    const Parts half = asin_of_root(0.5 * (1 - a));
    if (x > 0) return 2 * (half.high + half.low);
    return (whole_pi.high - 2 * half.high) + (whole_pi.low - 2 * half.low);
}

double atan2(double y, double x) {
    if (std::isnan(x) || std::isnan(y)) return nothing;
    double a = std::fabs(x), b = std::fabs(y);
    if (std::isinf(a) || std::isinf(b)) { // infinite arguments: the direction of a corner or an axis
        a = std::isinf(a) ? 1 : 0;
        b = std::isinf(b) ? 1 : 0;
    }
    Parts angle{0, 0};
    if (b <= a) {
        if (b > 0) angle = atan_of(b, a);
    } else {
        const Parts other = atan_of(a, b);
        angle = {half_pi.high - other.high, half_pi.low - other.low};
    }
    double value = angle.high + angle.low;
    if (std::signbit(x)) value = (whole_pi.high - angle.high) + (whole_pi.low - angle.low);
    return std::copysign(value, y);
}

double erfc(double x) {
    if (std::isnan(x)) return x;
    if (std::fabs(x) < 1) return 1 - erf_of(x);
    return x > 0 ? erfc_of(x) : 2 - erfc_of(-x);
}

double log_gamma(double x) {
    if (!(x > 0)) return nothing;
    if (x == infinity) return x;
    double product = 1;
    for (; x < 15; ++x)
        product *= x;
    constexpr double c[] = {0x1.5555555555555p-4,   -0x1.6c16c16c16c17p-9, 0x1.a01a01a01a01ap-11,
                            -0x1.3813813813814p-11, 0x1.b951e2b18ff23p-11, -0x1.f6ab0d9993c7dp-10,
                            0x1.a41a41a41a41ap-8,   -0x1.e4286cb0f5398p-6};
    const double inverse = 1 / x, z = inverse * inverse;
    double sum = 0;
    for (int k = 7; k >= 0; --k)
        sum = sum * z + c[k];
    // 0.9189... = log(2 pi) / 2
    return (x - 0.5) * log(x) - x + 0x1.d67f1c864beb5p-1 + inverse * sum - log(product);
}

} // namespace hsi::math
