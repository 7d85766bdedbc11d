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

// ln x for a normal x > 0: `log64`.
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
  return __dsub_rn(__dmul_rn(power, 6.93147180369123816490e-01), __dsub_rn(__dsub_rn(half, near), f));
}

}  // namespace
