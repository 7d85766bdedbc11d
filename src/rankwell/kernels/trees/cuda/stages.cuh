// Stages: all blocks work on one, and the last block that is done with it prepares the next.
//
// A tree is grown either by one launch, whose blocks wait for each other between stages, or by a launch for each stage,
// if the data must be sent to the device in between. Data that other blocks wrote is read through the second-level
// cache or after a fence, which empties the first-level cache.

#include "declarations.h"

extern __shared__ int4 memory[];

namespace {

// The block's memory whose size the launch says, for one stage at a time.
template <class T>
__device__ __forceinline__ T* shared_memory() {
  return reinterpret_cast<T*>(memory);
}

constexpr unsigned WHOLE_WARP = 0xffffffffu;
constexpr int WARPS = THREADS / 32;

__device__ __forceinline__ int lane_of() { return threadIdx.x & 31; }
__device__ __forceinline__ int warp_of() { return threadIdx.x >> 5; }

// Has the last block run `prepare`, in all of its threads. WAITS: return only after that.
template <bool WAITS, class Prepare>
__device__ __forceinline__ void end_stage(Growth* growth, Prepare prepare) {
  __shared__ unsigned stage;
  __shared__ int is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    stage = *const_cast<volatile unsigned*>(&growth->stage);
    is_last = atomicAdd(&growth->arrived, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (is_last) {
    prepare();
    __syncthreads();
    if (threadIdx.x == 0) {
      growth->arrived = 0;
      __threadfence();
      atomicAdd(&growth->stage, 1u);
    }
  } else if (WAITS && threadIdx.x == 0) {
    while (*const_cast<volatile unsigned*>(&growth->stage) == stage) __nanosleep(0);
  }
  if (WAITS) {
    if (threadIdx.x == 0) __threadfence();
    __syncthreads();
  }
}

template <class T>
__device__ __forceinline__ T sum_of_warp(T value) {
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(WHOLE_WARP, value, apart);
  return value;
}

__device__ __forceinline__ unsigned largest_of_warp(unsigned value) {
  for (int apart = 16; apart > 0; apart /= 2) value = max(value, __shfl_xor_sync(WHOLE_WARP, value, apart));
  return value;
}

__device__ __forceinline__ void add_to(long long* sum, long long more) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(more));
}

// The upper and the lower half of a packed sum: Σ gradient and Σ Hessian in units.
__device__ __forceinline__ int gradient_of(long long packed) { return static_cast<int>(packed >> 32); }
__device__ __forceinline__ unsigned hessian_of(long long packed) { return static_cast<unsigned>(packed); }

__device__ __forceinline__ unsigned* rows_of(const Space& space, int buffer) {
  return buffer == 0 ? space.rows_even : space.rows_odd;
}
__device__ __forceinline__ long long* packed_of(const Space& space, int buffer) {
  return buffer == 0 ? space.packed_even : space.packed_odd;
}

__device__ __forceinline__ int documents_of(const Part& part) { return part.end - part.start; }

// How many documents of an opening are on its left side. The root counts as a left side without a right one.
__device__ __forceinline__ int left_documents(const Data& data, const Opening& opening) {
  return opening.part < 0 ? data.n_docs : static_cast<int>(opening.sides >> 32);
}

__device__ __forceinline__ bool is_left_smaller(const Opening& opening, const Part& part, int n_left) {
  return opening.part < 0 || 2 * static_cast<long long>(n_left) <= documents_of(part);
}

}  // namespace
