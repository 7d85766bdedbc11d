// What is trained on, and the network's sizes.
//
// Macros: FEATURES, UNITS (0: linear), FEATURE_BITS (32, 16 or 8)

#if FEATURE_BITS == 16
#include <cuda_fp16.h>
typedef __half feature_t;
#elif FEATURE_BITS == 8
typedef signed char feature_t;
#else
typedef float feature_t;
#endif

#include "declarations.h"  // made by kernels/lists/declarations.py

constexpr int WIDTH = UNITS > 0 ? UNITS : 1;  // what the first layer puts out
constexpr int FIRST_BIAS = FEATURES * WIDTH;
constexpr int OUTPUT = FIRST_BIAS + WIDTH;  // the output unit's weights, where there is a hidden layer
constexpr int PARAMETERS = UNITS > 0 ? OUTPUT + UNITS + 1 : FEATURES + 1;

__device__ inline float as_float(feature_t x) {
#if FEATURE_BITS == 16
  return __half2float(x);
#else
  return static_cast<float>(x);
#endif
}

__device__ inline float stored_feature(const Lists& lists, long long row, int feature) {
  return as_float(lists.features[row * FEATURES + feature]) * lists.feature_scale[feature];
}
