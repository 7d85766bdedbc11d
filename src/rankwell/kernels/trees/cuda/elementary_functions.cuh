// Those of kernels/cpu/elementary_functions.py that gradients need, operation by operation.

#include "real.cuh"

namespace {

// e^x for x from −87.3 to 88.3: `exp32`.
__device__ __forceinline__ Real exponential(Real x) {
  const Real rounding = {12582912.0f}, one = {1.0f};
  const Real power = (x * Real{1.4426950408889634f} + rounding) - rounding;
  Real r = x - power * Real{0.693359375f};
  r = r - power * Real{-2.12194440e-4f};
  Real p = {1.9875691500e-4f};
  p = p * r + Real{1.3981999507e-3f};
  p = p * r + Real{8.3334519073e-3f};
  p = p * r + Real{4.1665795894e-2f};
  p = p * r + Real{1.6666665459e-1f};
  p = p * r + Real{5.0000001201e-1f};
  const Real mantissa = p * (r * r) + r + one;
  return mantissa * Real{__int_as_float((static_cast<int>(power.value) + 127) << 23)};
}

// e^x for a number x: `exp64`.
__device__ __forceinline__ double exponential(double x) {
  constexpr double ROUNDING = 0x1.8p52;
  const double limited = fmin(fmax(x, -746.0), 710.0);
  const double shifted = __dadd_rn(__dmul_rn(limited, 1.4426950408889634073599), ROUNDING);
  const double power = __dsub_rn(shifted, ROUNDING);
  double r = __dsub_rn(limited, __dmul_rn(power, 6.93145751953125e-1));
  r = __dsub_rn(r, __dmul_rn(power, 1.42860682030941723212e-6));
  const double z = __dmul_rn(r, r);
  double p = __dadd_rn(3.02994407707441961300e-2, __dmul_rn(z, 1.26177193074810590878e-4));
  p = __dmul_rn(r, __dadd_rn(9.99999999999999999910e-1, __dmul_rn(z, p)));
  double q = __dadd_rn(2.52448340349684104192e-3, __dmul_rn(z, 3.00198505138664455042e-6));
  q = __dadd_rn(2.27265548208155028766e-1, __dmul_rn(z, q));
  q = __dadd_rn(2.00000000000000000009, __dmul_rn(z, q));
  const double mantissa = __dadd_rn(1.0, __dmul_rn(2.0, __ddiv_rn(p, __dsub_rn(q, p))));
  // Two factors: 2^power itself may be too large or too small for a normal number.
  const long long whole = __double_as_longlong(shifted) - __double_as_longlong(ROUNDING), half = whole >> 1;
  const double first = __longlong_as_double((half + 1023) << 52);
  const double second = __longlong_as_double((whole - half + 1023) << 52);
  return __dmul_rn(__dmul_rn(mantissa, first), second);
}

// ln x for a normal x > 0, −∞ for 0: `log64`.
__device__ __forceinline__ double logarithm(double x) {
  const long long bits = __double_as_longlong(x) - 0x3FE6A09E667F3BCDll;
  const long long exponent = bits >> 52;
  const double power = static_cast<double>(exponent);
  const double f = __dsub_rn(__longlong_as_double(bits - exponent * (1ll << 52) + 0x3FE6A09E667F3BCDll), 1.0);
  const double s = __ddiv_rn(f, __dadd_rn(2.0, f));
  const double z = __dmul_rn(s, s), w = __dmul_rn(z, z);
  double even = __dadd_rn(2.222219843214978396e-01, __dmul_rn(w, 1.531383769920937332e-01));
  even = __dmul_rn(w, __dadd_rn(3.999999999940941908e-01, __dmul_rn(w, even)));
  double odd = __dadd_rn(1.818357216161805012e-01, __dmul_rn(w, 1.479819860511658591e-01));
  odd = __dadd_rn(2.857142874366239149e-01, __dmul_rn(w, odd));
  odd = __dmul_rn(z, __dadd_rn(6.666666666666735130e-01, __dmul_rn(w, odd)));
  const double half = __dmul_rn(__dmul_rn(0.5, f), f);
  const double near =
      __dadd_rn(__dmul_rn(s, __dadd_rn(half, __dadd_rn(even, odd))), __dmul_rn(power, 1.90821492927058770002e-10));
  const double y = __dsub_rn(__dmul_rn(power, 6.93147180369123816490e-01), __dsub_rn(__dsub_rn(half, near), f));
  return x > 0.0 ? y : -__longlong_as_double(0x7FF0000000000000ll);
}

}  // namespace
