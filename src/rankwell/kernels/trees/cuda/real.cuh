// float32 arithmetic as on the CPU: each operation rounds once, and subnormal numbers stay what they are, although CuPy
// compiles with -ftz=true.

#include "float32.cuh"

namespace {

struct Real {
  float value;
};

#ifdef __CUDACC__
#define REAL_OPERATOR(symbol, instruction)                                             \
  __device__ __forceinline__ Real operator symbol(Real x, Real y) {                    \
    Real result;                                                                       \
    asm(instruction " %0, %1, %2;" : "=f"(result.value) : "f"(x.value), "f"(y.value)); \
    return result;                                                                     \
  }
// Of one number; most of these become a part of the operation that takes the result.
#define REAL_FUNCTION(name, instruction, on_host)             \
  __device__ __forceinline__ Real name(Real x) {              \
    Real result;                                              \
    asm(instruction ";" : "=f"(result.value) : "f"(x.value)); \
    return result;                                            \
  }
#else
#define REAL_OPERATOR(symbol, instruction) \
  __device__ __forceinline__ Real operator symbol(Real x, Real y) { return {x.value symbol y.value}; }
#define REAL_FUNCTION(name, instruction, on_host) \
  __device__ __forceinline__ Real name(Real x) { return {on_host}; }
#endif
REAL_OPERATOR(+, "add.rn.f32")
REAL_OPERATOR(-, "sub.rn.f32")
REAL_OPERATOR(*, "mul.rn.f32")
REAL_FUNCTION(operator-, "neg.f32 %0, %1", -x.value)
REAL_FUNCTION(size_of, "abs.f32 %0, %1", std::fabs(x.value))
REAL_FUNCTION(positive_part, "max.f32 %0, %1, 0f00000000", std::max(x.value, 0.0f))

// 1/x, rounded once, for x from 2^-125 to 2^125: the approximation and one step of Newton's, as the compiler's own
// reciprocal does after it has asked for the range.
__device__ __forceinline__ Real reciprocal(Real x) {
#ifdef __CUDACC__
  float near;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(x.value));
  return {__fmaf_rn(near, __fmaf_rn(-x.value, near, 1.0f), near)};
#else
  return {1.0f / x.value};
#endif
}

// A number's order as a whole number: equal for 0 and −0.
__device__ __forceinline__ int order_of(float x) {
  const int bits = __float_as_int(x);
  return bits >= 0 ? bits : (bits & 0x7fffffff) == 0 ? 0 : bits ^ 0x7fffffff;
}

__device__ __forceinline__ float of_order(int order) { return __int_as_float(order >= 0 ? order : order ^ 0x7fffffff); }

__device__ __forceinline__ bool is_positive(Real x) { return __float_as_int(x.value) > 0; }

// y, or −y if x has a minus.
__device__ __forceinline__ Real with_sign_of(Real x, Real y) {
  return {__int_as_float(__float_as_int(y.value) ^ (__float_as_int(x.value) & static_cast<int>(0x80000000)))};
}

}  // namespace
