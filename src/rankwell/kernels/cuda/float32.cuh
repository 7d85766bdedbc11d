// float32 numbers as float64, and back. CuPy compiles with -ftz=true, under which the compiler's own conversions treat
// subnormal float32 numbers as 0; these do not.

// x as it is.
__device__ inline double widen(float x) {
#ifdef __CUDACC__
  double result;
  asm("cvt.f64.f32 %0, %1;" : "=d"(result) : "f"(x));
  return result;
#else
  return x;
#endif
}

// x rounded to float32.
__device__ inline float narrow(double x) {
#ifdef __CUDACC__
  float result;
  asm("cvt.rn.f32.f64 %0, %1;" : "=f"(result) : "d"(x));
  return result;
#else
  return static_cast<float>(x);
#endif
}
