// Normalisers on the device, over columns of float32 features; element (i, d) is at i * stride + d. float64
// arithmetic, rounded once, in the order of `scoring/normaliser.py`: the same bits as the CPU's.

#include "float32.cuh"

namespace {

constexpr int WARP = 32;

}  // namespace

// (x − mean) / scale. grid (documents / block, features)
extern "C" __global__ void standardise(long long n_docs, long long stride, const double* mean, const double* scale,
                                       float* columns) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  float* value = columns + blockIdx.y * stride + doc;
  *value = narrow((widen(*value) - mean[blockIdx.y]) / scale[blockIdx.y]);
}

// (x − min) / (max − min) over a query's documents; fill_missing: missing values take the query's minimum first, 0
// where all are missing. grid (at least *n_queries, features), a block of one warp
extern "C" __global__ void scale_queries(const long long* query_ptr, const long long* n_queries, long long stride,
                                         int fill_missing, float* columns) {
  const long long query = blockIdx.x;
  if (query >= *n_queries) return;
  const long long begin = query_ptr[query], end = query_ptr[query + 1];
  float* values = columns + blockIdx.y * stride;
  double lowest = nan(""), highest = nan("");
  for (long long doc = begin + threadIdx.x; doc < end; doc += WARP) {
    const double x = widen(values[doc]);
    lowest = fmin(lowest, x);
    highest = fmax(highest, x);
  }
  for (int distance = WARP / 2; distance > 0; distance /= 2) {
    lowest = fmin(lowest, __shfl_xor_sync(~0u, lowest, distance));
    highest = fmax(highest, __shfl_xor_sync(~0u, highest, distance));
  }
  const double spread = highest - lowest;
  const double divisor = spread > 0.0 ? spread : __longlong_as_double(0x7ff0000000000000LL);
  if (fill_missing && isnan(lowest)) lowest = 0.0;
  for (long long doc = begin + threadIdx.x; doc < end; doc += WARP) {
    double x = widen(values[doc]);
    if (fill_missing && isnan(x)) x = lowest;
    values[doc] = narrow((x - lowest) / divisor);
  }
}
