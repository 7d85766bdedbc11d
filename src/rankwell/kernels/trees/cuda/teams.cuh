// Those who work on a query together.

namespace {

constexpr unsigned WHOLE_WARP = 0xffffffffu;

// A warp, or a block.
template <bool BLOCK>
struct Team {
  int thread, n_threads;

  __device__ __forceinline__ void meet() const {
    if (BLOCK) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }

  // The largest of all threads' numbers.
  __device__ __forceinline__ int largest(int number) const {
    for (int apart = 16; apart > 0; apart /= 2) number = max(number, __shfl_xor_sync(WHOLE_WARP, number, apart));
    if constexpr (BLOCK) {
      __shared__ int of_block;
      // All have read that of an earlier call.
      __syncthreads();
      if (thread == 0) of_block = number;
      __syncthreads();
      if (thread % 32 == 0) atomicMax(&of_block, number);
      __syncthreads();
      number = of_block;
    }
    return number;
  }
};

}  // namespace
