// Normalisers on the device, over columns of float32 features; element (i, d) lies at i * stride + d. float64 arithmetic,
// rounded once, in the order of `scoring/normaliser.py`: the CPU's bits.

namespace {

constexpr int WARP = 32;

// x as it is, and x rounded to float32. CuPy compiles with -ftz=true, under which the hardware's own conversions make 0
// of subnormal float32 numbers.
__device__ double widen(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) != 0) return x;
  const double size = (bits & 0x7fffffu) * 0x1p-149;
  return bits >> 31 ? -size : size;
}

__device__ float narrow(double x) {
  if (!(fabs(x) < 0x1p-126)) return static_cast<float>(x);
  const unsigned bits = static_cast<unsigned>(rint(fabs(x) * 0x1p149));
  return __uint_as_float(signbit(x) ? bits | 0x80000000u : bits);
}

}  // namespace

// (x − mean) / scale. grid (documents / block, features)
extern "C" __global__ void standardise(long long n_docs, long long stride, const double* mean, const double* scale,
                                       float* columns) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  float* value = columns + blockIdx.y * stride + doc;
  *value = narrow((widen(*value) - mean[blockIdx.y]) / scale[blockIdx.y]);
}

// (x − min) / (max − min) over a query's documents; fill_missing: missing values take the query's minimum first, 0 where
// all are missing. grid (at least *n_queries, features), a block of one warp
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
