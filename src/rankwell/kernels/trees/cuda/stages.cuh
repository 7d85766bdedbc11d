// Stages: all blocks work on one, and the last block that is done with it prepares the next.
//
// A tree is grown either by one launch, whose blocks wait for each other between stages, or by a launch for each stage,
// if the data must be sent to the device in between.

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

// Writes before `arrive` and `release` can be read after the `arrive` and `acquire` of other blocks that come later.
__device__ __forceinline__ unsigned arrive(unsigned* number) {
#ifdef __CUDACC__
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(before) : "l"(number) : "memory");
  return before;
#else
  return atomicAdd(number, 1u);
#endif
}

__device__ __forceinline__ void release(unsigned* number, unsigned value) {
#ifdef __CUDACC__
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(number), "r"(value) : "memory");
#else
  __atomic_store_n(number, value, __ATOMIC_SEQ_CST);
#endif
}

__device__ __forceinline__ unsigned acquire(const unsigned* number) {
#ifdef __CUDACC__
  unsigned value;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(number) : "memory");
  return value;
#else
  __nanosleep(0);
  return __atomic_load_n(number, __ATOMIC_SEQ_CST);
#endif
}

// Has the last block run `prepare`, in all of its threads. WAITS: return only after that.
template <bool WAITS, class Prepare>
__device__ __forceinline__ void end_stage(Growth* growth, Prepare prepare) {
  __shared__ int is_last;
  unsigned stage = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    stage = *const_cast<volatile unsigned*>(&growth->stage);
    is_last = arrive(&growth->arrived) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    prepare();
    __syncthreads();
    if (threadIdx.x == 0) {
      growth->arrived = 0;
      release(&growth->stage, stage + 1);
    }
  } else if (WAITS && threadIdx.x == 0) {
    while (acquire(&growth->stage) == stage) {
    }
  }
  if (WAITS) __syncthreads();
}

template <class T>
__device__ __forceinline__ T sum_of_warp(T value) {
#pragma unroll 1
  for (int apart = 16; apart > 0; apart /= 2) value += __shfl_xor_sync(WHOLE_WARP, value, apart);
  return value;
}

// The sum of the values of a lane and of those before it.
template <class T>
__device__ __forceinline__ T running_sum(T value) {
#pragma unroll 1
  for (int apart = 1; apart < 32; apart *= 2) {
    const T other = __shfl_up_sync(WHOLE_WARP, value, apart);
    if (lane_of() >= apart) value += other;
  }
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
