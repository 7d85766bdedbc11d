// The blocks that share a query, and operations over a whole block.
//
// Macros: TEAM, THREADS, CLUSTER (1: a team is a thread block cluster; 0: blocks launched cooperatively)

#include "lists.cuh"

constexpr int WARPS = THREADS / 32;

// Waits until all blocks of the team are here; then each sees what the others wrote.
__device__ inline void team_sync(const Buffers& buffers) {
#if TEAM == 1
  __syncthreads();
#elif CLUSTER
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    // The count may wrap around: TEAM divides 2^32, and differences are still correct.
    const unsigned goal = (atomicAdd(buffers.arrivals, 1u) / TEAM + 1) * TEAM;
    while (static_cast<int>(*static_cast<volatile unsigned*>(buffers.arrivals) - goal) < 0) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
#endif
}

__device__ inline unsigned team_rank() {
  return TEAM == 1 ? 0 : blockIdx.x;  // a team of several blocks is the only team
}

// The sums over the block of K values per thread, the same in every thread.
template <int K>
__device__ void block_sum(double (&values)[K]) {
  __shared__ double warp_sums[WARPS][4];
  for (int k = 0; k < K; ++k)
    for (int offset = 16; offset > 0; offset >>= 1) values[k] += __shfl_down_sync(0xffffffffu, values[k], offset);
  if (threadIdx.x % 32 == 0)
    for (int k = 0; k < K; ++k) warp_sums[threadIdx.x / 32][k] = values[k];
  __syncthreads();
  for (int k = 0; k < K; ++k) {
    values[k] = 0.0;
    for (int warp = 0; warp < WARPS; ++warp) values[k] += warp_sums[warp][k];
  }
  __syncthreads();
}

// The best document with a key below `limit`: the largest score, the first of equal ones. A key is the score's bits in
// an order that compares as unsigned, followed by the document's number counted backwards.
__device__ unsigned long long block_best(const float* scores, int n, unsigned long long limit) {
  __shared__ unsigned long long warp_best[WARPS];
  unsigned long long best = 0;
  for (int i = threadIdx.x; i < n; i += THREADS) {
    unsigned bits = __float_as_uint(scores[i]);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    unsigned long long key = (static_cast<unsigned long long>(bits) << 32) | (0xffffffffu - i);
    if (key < limit && key > best) best = key;
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    unsigned long long other = __shfl_down_sync(0xffffffffu, best, offset);
    best = other > best ? other : best;
  }
  if (threadIdx.x % 32 == 0) warp_best[threadIdx.x / 32] = best;
  __syncthreads();
  best = 0;
  for (int warp = 0; warp < WARPS; ++warp) best = warp_best[warp] > best ? warp_best[warp] : best;
  __syncthreads();
  return best;
}

__device__ inline int document_of(unsigned long long key) { return 0xffffffffu - static_cast<unsigned>(key); }
