// float32 numbers as float64, and back. CuPy compiles with -ftz=true, under which the hardware's own conversions and
// comparisons take subnormal float32 numbers for 0.

// x as it is.
__device__ inline double widen(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) != 0) return x;
  const double size = (bits & 0x7fffffu) * 0x1p-149;
  return bits >> 31 ? -size : size;
}

// x rounded to float32.
__device__ inline float narrow(double x) {
  if (!(fabs(x) < 0x1p-126)) return static_cast<float>(x);
  const unsigned bits = static_cast<unsigned>(rint(fabs(x) * 0x1p149));
  return __uint_as_float(signbit(x) ? bits | 0x80000000u : bits);
}
