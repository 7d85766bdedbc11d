// Gradients and Hessians as packed whole numbers: see `rules.py`.

#include "feature_rules.cuh"
#include "float32.cuh"
#include "random_numbers.cuh"
#include "stages.cuh"

namespace {

__device__ __forceinline__ double power_of_two(int exponent) { return ldexp(1.0, exponent); }

// The power of two that brings the value with these bits, above 0, between 2^(FIRST_BITS - 1) and 2^FIRST_BITS.
__device__ __forceinline__ int first_exponent(unsigned largest_bits) {
  int exponent;
  frexp(widen(__uint_as_float(largest_bits)), &exponent);
  return FIRST_BITS - exponent;
}

__device__ __forceinline__ int final_exponent(int exponent, long long total, long long n_docs, int bits) {
  int shift = 0;
  while (((total + n_docs) >> shift) + n_docs >= 1ll << bits) ++shift;
  return exponent - shift;
}

__device__ __forceinline__ long long in_units(float value, double scale) {
  return __double2ll_rn(__dmul_rn(widen(value), scale));
}

// Call `each` with the gradient, Hessian and number of every document that this block works on, four at a time if
// all of them are there.
template <class Each>
__device__ __forceinline__ void for_documents(const Data& data, const Space& space, Each each) {
  const int n_fours = data.n_docs / 4, step = gridDim.x * THREADS, first = blockIdx.x * THREADS + threadIdx.x;
#pragma unroll 2
  for (int i = first; i < n_fours; i += step) {
    const float4 gradient = reinterpret_cast<const float4*>(space.gradient)[i];
    const float4 hessian = reinterpret_cast<const float4*>(space.hessian)[i];
    each(gradient.x, hessian.x, 4 * i);
    each(gradient.y, hessian.y, 4 * i + 1);
    each(gradient.z, hessian.z, 4 * i + 2);
    each(gradient.w, hessian.w, 4 * i + 3);
  }
  const int last = 4 * n_fours + first;
  if (last < data.n_docs) each(space.gradient[last], space.hessian[last], last);
}

// The sums of two numbers over the block, known to thread 0.
__device__ __forceinline__ void sum_of_block(long long& first, long long& second) {
  __shared__ long long sums[2];
  if (threadIdx.x < 2) sums[threadIdx.x] = 0;
  __syncthreads();
  first = sum_of_warp(first);
  second = sum_of_warp(second);
  if (lane_of() == 0) {
    add_to(&sums[0], first);
    add_to(&sums[1], second);
  }
  __syncthreads();
  first = sums[0];
  second = sums[1];
}

template <bool WAITS>
__device__ __forceinline__ void find_largest(const Data& data, const Space& space) {
  __shared__ unsigned largest[2];
  unsigned most = 0, most_hessian = 0;
  if (threadIdx.x < 2) largest[threadIdx.x] = 0;
  for_documents(data, space, [&](float gradient, float hessian, int) {
    most = max(most, __float_as_uint(gradient) & 0x7fffffffu);
    most_hessian = max(most_hessian, __float_as_uint(hessian) & 0x7fffffffu);
  });
  most = largest_of_warp(most);
  most_hessian = largest_of_warp(most_hessian);
  __syncthreads();
  if (lane_of() == 0) {
    atomicMax(&largest[0], most);
    atomicMax(&largest[1], most_hessian);
  }
  __syncthreads();
  Growth* growth = space.growth;
  if (threadIdx.x == 0) {
    atomicMax(&growth->largest_gradient, largest[0]);
    atomicMax(&growth->largest_hessian, largest[1]);
  }
  end_stage<WAITS>(growth, [=] {
    if (threadIdx.x != 0) return;
    growth->finished = growth->largest_gradient == 0 || growth->largest_hessian == 0;
    if (growth->finished) return;
    growth->gradient_exponent = first_exponent(growth->largest_gradient);
    growth->hessian_exponent = first_exponent(growth->largest_hessian);
  });
}

template <bool WAITS>
__device__ __forceinline__ void sum_sizes(const Data& data, const Settings& settings, const Space& space) {
  Growth* growth = space.growth;
  const double scale = power_of_two(growth->gradient_exponent), hessian_scale = power_of_two(growth->hessian_exponent);
  long long gradient_sum = 0, hessian_sum = 0;
  for_documents(data, space, [&](float gradient, float hessian, int) {
    gradient_sum += llabs(in_units(gradient, scale));
    hessian_sum += in_units(hessian, hessian_scale);
  });
  sum_of_block(gradient_sum, hessian_sum);
  if (threadIdx.x == 0) {
    add_to(&growth->gradient_sum, gradient_sum);
    add_to(&growth->hessian_sum, hessian_sum);
  }
  end_stage<WAITS>(growth, [=] {
    if (threadIdx.x != 0) return;
    const int a = final_exponent(growth->gradient_exponent, growth->gradient_sum, data.n_docs, GRADIENT_BITS);
    const int b = final_exponent(growth->hessian_exponent, growth->hessian_sum, data.n_docs, HESSIAN_BITS);
    growth->gradient_exponent = a;
    growth->hessian_exponent = b;
    growth->l1 = ldexp(settings.l1, a);
    growth->l2 = ldexp(settings.l2, b);
    growth->min_gain = ldexp(settings.min_gain, 2 * a - b);
    const double least = ldexp(settings.min_hessian_leaf, b);
    growth->least_hessian = static_cast<long long>(ceil(least < LOWER_HALF ? least : LOWER_HALF));
  });
}

// Whether the tree is grown on a document: see `sampling.py`.
__device__ __noinline__ bool counts(const Data& data, const Settings& settings, int document) {
  if (settings.queries < 1.0) {
    const int query = data.query_of[document];
    if (random_unit(settings.query_seed, settings.tree, query) >= settings.queries) return false;
  }
  return settings.documents >= 1.0 || random_unit(settings.document_seed, settings.tree, document) < settings.documents;
}

// All documents become one part, which is to be counted. Those that do not count are 0.
template <bool WAITS>
__device__ __forceinline__ void pack(const Data& data, const Settings& settings, const Space& space) {
  Growth* growth = space.growth;
  const double scale = power_of_two(growth->gradient_exponent), hessian_scale = power_of_two(growth->hessian_exponent);
  const bool is_drawn = settings.queries < 1.0 || settings.documents < 1.0;
  long long total = 0, n_counting = 0;
  // A thread's four documents are written together.
  long long four[4];
  for_documents(data, space, [&](float gradient, float hessian, int document) {
    const bool is_counting = !is_drawn || counts(data, settings, document);
    const long long units = in_units(gradient, scale) * 4294967296ll + in_units(hessian, hessian_scale);
    const long long value = is_counting ? units : 0;
    total += value;
    n_counting += is_counting;
    if (document / 4 == data.n_docs / 4) {
      space.packed_even[document] = value;
      space.rows_even[document] = document;
      return;
    }
    four[document % 4] = value;
    if (document % 4 != 3) return;
    longlong2* packed = reinterpret_cast<longlong2*>(space.packed_even + document - 3);
    packed[0] = make_longlong2(four[0], four[1]);
    packed[1] = make_longlong2(four[2], four[3]);
    const unsigned row = document;
    *reinterpret_cast<uint4*>(space.rows_even + document - 3) = make_uint4(row - 3, row - 2, row - 1, row);
  });
  sum_of_block(total, n_counting);
  if (threadIdx.x == 0) {
    add_to(&growth->total, total);
    add_to(&growth->n_counting, n_counting);
  }
  end_stage<WAITS>(growth, [=] {
    if (threadIdx.x != 0) return;
    const long long n_docs = data.n_docs, twice = 2 * max(growth->n_counting, 1ll);
    // With more than n_docs no leaf can be cut either, and products of more might not fit.
    growth->min_docs_leaf = min(max((2ll * settings.min_docs_leaf * n_docs + twice / 2) / twice, 1ll), n_docs);
    Part root = {};
    root.total = growth->total;
    root.end = data.n_docs;
    root.above = root.left = root.leaf = root.node = -1;
    space.parts[0] = root;
    Opening opening = {};
    opening.part = -1;
    space.openings[0] = opening;
    space.leaves[0].part = 0;
    begin_rules(space);
    growth->n_parts = growth->n_openings = growth->n_leaves = 1;
  });
}

}  // namespace
