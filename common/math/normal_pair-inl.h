// SPDX-License-Identifier: MIT
// Part of math/philox.h. Kernels include this file once per instruction set, each time with another
// arithmetic A. Therefore the file has no namespace and no include guard.

template <class A, int Count>
HSI_HOST_DEVICE inline typename A::Number polynomial(typename A::Number x, const double (&c)[Count]) {
    typename A::Number sum = A::number(c[Count - 1]);
    for (int i = Count - 2; i >= 0; --i)
        sum = A::add(A::mul(sum, x), A::number(c[i]));
    return sum;
}

/// Makes two independent standard normal numbers from two words below 2^32: sqrt(-2 ln u) times the cosine
/// and the sine of 2 pi v, with u and v as in open_uniform(). Logarithm, sine and cosine are those of fdlibm
/// (K. C. Ng, Sun Microsystems), exact to one unit in the last place.
template <class A>
HSI_HOST_DEVICE inline void normal_pair(typename A::Word first, typename A::Word second,
                                        typename A::Number& cosine, typename A::Number& sine) {
    using Real = typename A::Number;
    using Bits = typename A::Word;
    constexpr double logarithm_terms[] = {6.666666666666735130e-01, 3.999999999940941908e-01,
                                          2.857142874366239149e-01, 2.222219843214978396e-01,
                                          1.818357216161805012e-01, 1.531383769920937332e-01,
                                          1.479819860511658591e-01};
    constexpr double sine_terms[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                     -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                     -2.50507602534068634195e-08, 1.58969099521155010221e-10};
    constexpr double cosine_terms[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                       2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                       2.08757232129817482790e-09, -1.13596475577881948265e-11};
    // Computes ln u for u = m 2^e with m in [sqrt(1/2), sqrt(2)).
    const Real u = A::mul(A::add(A::of_word(first), A::number(0.5)), A::number(0x1p-32));
    constexpr uint64_t root_half = 0x3FE6A09E667F3BCD, one = 0x3FF0000000000000;
    // `biased` is e + 1023, which is at least 989.
    const Bits biased = A::template down<52>(A::plus(A::bits(u), one - root_half));
    const Real m = A::from_bits(A::minus(A::plus(A::bits(u), one), A::template up<52>(biased)));
    const Real e = A::sub(A::of_word(biased), A::number(1023));
    const Real f = A::sub(m, A::number(1)), s = A::div(f, A::add(A::number(2), f)), z = A::mul(s, s);
    const Real half = A::mul(A::number(0.5), A::mul(f, f));
    const Real r = A::mul(z, polynomial<A>(z, logarithm_terms));
    const Real low = A::add(A::mul(s, A::add(half, r)), A::mul(e, A::number(1.90821492927058770002e-10)));
    const Real logarithm =
        A::sub(A::mul(e, A::number(6.93147180369123816490e-01)), A::sub(A::sub(half, low), f));
    const Real length = A::root(A::mul(A::number(-2), logarithm));
    // v = quarter / 4 + left 2^-32, where the second term is between -1/8 and 1/8. Both terms are exact.
    constexpr uint64_t eighth = uint64_t{1} << 29;
    const Bits turned = A::plus(second, eighth), quarter = A::template down<30>(turned);
    const Real left = A::add(A::of_word(A::minus(turned, A::template up<30>(quarter))),
                             A::number(0.5 - static_cast<double>(eighth)));
    const Real x = A::mul(left, A::number(0x1p-32 * 6.283185307179586476925287)), xx = A::mul(x, x);
    const Real sin_x = A::add(x, A::mul(A::mul(x, xx), polynomial<A>(xx, sine_terms)));
    const Real cos_x = A::sub(A::number(1), A::sub(A::mul(A::number(0.5), xx),
                                                   A::mul(A::mul(xx, xx), polynomial<A>(xx, cosine_terms))));
    cosine =
        A::mul(length, A::negate(A::template down<1>(A::plus(quarter, 1)), A::choose(quarter, cos_x, sin_x)));
    sine = A::mul(length, A::negate(A::template down<1>(quarter), A::choose(quarter, sin_x, cos_x)));
}
