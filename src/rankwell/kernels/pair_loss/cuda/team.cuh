// Threads that work on one query together, and their prefix sums.

namespace {

constexpr int kWarp = 32;
constexpr int kMostWarps = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// Threads that work on one query together: whole warps of a block, with their own barrier.
struct Team {
  int thread;  // 0 ... size - 1
  int size;
  int barrier;

  // Not the aligned form: lanes of a warp may arrive separately.
  __device__ void sync() const { asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(size) : "memory"); }
};

// Inclusive scan of N numbers per thread over the team, in thread order; `carry` is added and grows by the team's
// total. `turn` alternates 0 and 1 from scan to scan, so that one barrier is enough. Only one team of a block may scan.
template <typename T, int N>
__device__ void team_scan(const Team& team, T (&x)[N], T (&carry)[N], int turn) {
  __shared__ T totals[2][kMostWarps][N];
  const int lane = team.thread % kWarp, warp = team.thread / kWarp, n_warps = team.size / kWarp;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const T other = __shfl_up_sync(kAllLanes, x[k], step);
      if (lane >= step) x[k] += other;
    }
  }
  if (lane == kWarp - 1) {
#pragma unroll
    for (int k = 0; k < N; ++k) totals[turn][warp][k] = x[k];
  }
  team.sync();
#pragma unroll
  for (int k = 0; k < N; ++k) {
    T before = carry[k];
    for (int w = 0; w < n_warps; ++w) {
      if (w == warp) x[k] += before;
      before += totals[turn][w][k];
    }
    carry[k] = before;
  }
}

}  // namespace
