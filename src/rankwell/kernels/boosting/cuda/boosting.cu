// RankBoost: whole rounds on the device. Five kernels per round; the host does not wait for them:
//
//   potentials      π of every document, in units of 2^−30
//   histograms      Σ π by feature and bin
//   choose          integral histograms, the best weak ranker, e^{±α}
//   reweight        e^{±H} where h = 1, sums by label level, Z, and the round's record
//   recentre        every 32nd round, instead of the sums of `reweight`: new powers of two first
//
// Vocabulary and precision are those of `contract.py` and `precision.py`. Sums in float64 run in the same order as on
// the CPU and are never contracted into fused operations, all others are integers: the rounds have the same bits as the
// CPU's.
//
// Macros: GROUP    features whose histograms a block holds
//         THREADS  of a block of `histograms`

#include "weights.cuh"

namespace {

__device__ __forceinline__ int block_max(int value, int* scratch) {
  value = warp_max(value);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
  __syncthreads();
  int best = scratch[0];
  for (int w = 1; w < static_cast<int>(blockDim.x >> 5); ++w) best = max(best, scratch[w]);
  return best;
}

}  // namespace

extern "C" {

__global__ void __launch_bounds__(256) potentials(Queries queries, Weights weights, const Control* control, int* pi) {
  if (control->finished) return;
  const int lane = threadIdx.x & 7;
  const double scale = __ddiv_rn(1.0 / PI_UNIT, control->total);
  for (int q = first_query(); q < queries.n_queries; q += query_step()) {
    const int first = __ldg(&queries.query_segments[q]), last = __ldg(&queries.query_segments[q + 1]);
    int left_over = 0;
    for (int s = first_segment(first); s < last; s += WIDTH / 8) {
      // Only π is written here, so loads may be moved before stores.
      const double below = __ldg(&weights.below[s]), above = __ldg(&weights.above[s]);
      const int end = __ldg(&queries.segment_ptr[s + 1]);
#pragma unroll 4
      for (int i = __ldg(&queries.segment_ptr[s]) + lane; i < end; i += 8) {
        const double rise = __dmul_rn(__ldg(&weights.down[i]), below), fall = __dmul_rn(__ldg(&weights.up[i]), above);
        const int rounded = __double2int_rn(__dmul_rn(__dsub_rn(rise, fall), scale));
        pi[pi_place(i)] = rounded;
        left_over += rounded;
      }
    }
    const unsigned mask = query_lanes();
    for (int apart = WIDTH / 2; apart > 0; apart /= 2) left_over += __shfl_xor_sync(mask, left_over, apart, WIDTH);
    __syncwarp(mask);
    if ((threadIdx.x & (WIDTH - 1)) == 0) pi[pi_place(queries.segment_ptr[last] - 1)] -= left_over;
  }
}

// The documents of all feature groups are divided evenly among the blocks, so a block works on one or two groups. A
// lane adds into its own column; the columns are added up when the block leaves a group.
// bins : [n_features][16 · n_words] bytes, of features first_feature, ...; out : [n_features][256], of all features
__global__ void __launch_bounds__(THREADS)
    histograms(const uint4* __restrict__ bins, const int4* __restrict__ pi, int n_words, int n_features,
               int first_feature, const Control* control, int* out) {
  extern __shared__ int histogram[];
  const int column = threadIdx.x & (COLUMNS - 1);
  const int n_tiles = (n_words + 31) / 32;
  const int n_groups = (n_features + GROUP - 1) / GROUP;
  const long long all = static_cast<long long>(n_tiles) * n_groups;
  long long tile = all * blockIdx.x / gridDim.x;
  const long long end = all * (blockIdx.x + 1) / gridDim.x;
  if (control->finished || tile == end) return;
  for (int i = threadIdx.x; i < GROUP * BINS * COLUMNS; i += blockDim.x) histogram[i] = 0;
  __syncthreads();
  while (tile < end) {
    const int group = static_cast<int>(tile / n_tiles);
    const int from = static_cast<int>(tile - static_cast<long long>(group) * n_tiles);
    const int to = static_cast<int>(min(static_cast<long long>(n_tiles), from + end - tile));
    const int feature = group * GROUP;
    for (int t = from + (threadIdx.x >> 5); t < to; t += blockDim.x >> 5) {
      const int word = t * 32 + (threadIdx.x & 31);
      if (word >= n_words) continue;
      uint4 loaded[GROUP];
#pragma unroll
      for (int g = 0; g < GROUP; ++g) {
        // Beyond the last feature, a group reads the last one again without adding it to `out`.
        const int f = min(feature + g, n_features - 1);
        loaded[g] = __ldcs(&bins[static_cast<size_t>(f) * n_words + word]);
      }
      int value[16];
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int4 four = pi[t * (TILE / 4) + part * 32 + (threadIdx.x & 31)];
        value[4 * part] = four.x;
        value[4 * part + 1] = four.y;
        value[4 * part + 2] = four.z;
        value[4 * part + 3] = four.w;
      }
#pragma unroll
      for (int g = 0; g < GROUP; ++g) {
        int* mine = histogram + g * BINS * COLUMNS + column;
        const unsigned words[4] = {loaded[g].x, loaded[g].y, loaded[g].z, loaded[g].w};
#pragma unroll
        for (int j = 0; j < 16; ++j) atomicAdd(&mine[((words[j / 4] >> (8 * (j % 4))) & 255u) * COLUMNS], value[j]);
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUP * BINS; i += blockDim.x) {
      int sum = 0;
      for (int c = 0; c < COLUMNS; ++c) {
        int* cell = &histogram[i * COLUMNS + ((c + i) & (COLUMNS - 1))];
        sum += *cell;
        *cell = 0;
      }
      if (sum != 0 && feature + i / BINS < n_features) {
        atomicAdd(&out[static_cast<size_t>(first_feature + feature + i / BINS) * BINS + i % BINS], sum);
      }
    }
    __syncthreads();
    tile += to - from;
  }
}

// One block of 256 threads per feature: r(f, b) = Σ_{a > b} Hist_f(a); the last block to finish takes the lowest
// feature, then bin, whose |r| is within `margin` of the largest. `histogram` is reset to 0 for the next round. The
// learning rate is 2^−halvings.
__global__ void __launch_bounds__(256) choose(int* histogram, int n_features, int n_bins, int margin, int halvings,
                                              int* table, int* largest, Control* control) {
  __shared__ int scratch[8];
  if (control->finished) return;
  const int feature = blockIdx.x, b = threadIdx.x, lane = b & 31, warp = b >> 5;
  const size_t place = static_cast<size_t>(feature) * BINS + b;
  const int own = histogram[place];
  histogram[place] = 0;
  int suffix = own;
  for (int apart = 1; apart < 32; apart *= 2) {
    const int other = __shfl_down_sync(WHOLE_WARP, suffix, apart);
    if (lane + apart < 32) suffix += other;
  }
  if (lane == 0) scratch[warp] = suffix;
  __syncthreads();
  int r = suffix - own;
  for (int w = warp + 1; w < 8; ++w) r += scratch[w];
  if (b >= n_bins - 1) r = 0;
  table[place] = r;
  const int size = block_max(abs(r), scratch);
  if (b == 0) largest[feature] = size;
  if (!last_block(control)) return;

  int best = 0;
  for (int f = b; f < n_features; f += BINS) best = max(best, __ldcg(&largest[f]));
  best = block_max(best, scratch);
  int chosen = n_features;
  for (int f = b; f < n_features; f += BINS) {
    if (__ldcg(&largest[f]) >= best - margin) chosen = min(chosen, f);
  }
  chosen = -block_max(-chosen, scratch);
  const int candidate = __ldcg(&table[static_cast<size_t>(chosen) * BINS + b]);
  const int threshold = -block_max(b < n_bins - 1 && abs(candidate) >= best - margin ? -b : -BINS, scratch);
  if (b != 0) return;
  if (best <= margin) {
    control->finished = 1;
    return;
  }
  const int found = __ldcg(&table[static_cast<size_t>(chosen) * BINS + threshold]);
  control->feature = chosen;
  control->bin = threshold;
  control->r = min(max(found, -LARGEST_R), LARGEST_R);
  const double value = __dmul_rn(control->r, PI_UNIT);
  const double plus = __dadd_rn(1.0, value), minus = __dsub_rn(1.0, value);
  double up_factor = __dsqrt_rn(__ddiv_rn(plus, minus)), down_factor = __dsqrt_rn(__ddiv_rn(minus, plus));
  for (int i = 0; i < halvings; ++i) {
    up_factor = __dsqrt_rn(up_factor);
    down_factor = __dsqrt_rn(down_factor);
  }
  control->up_factor = up_factor;
  control->down_factor = down_factor;
  control->pending = (control->round + 1) % RECENTRE_ROUNDS == 0;
  control->next_common = -2147483647 - 1;
}

// column : the chosen feature's bins if they are not in `bins`, else null
__global__ void __launch_bounds__(256)
    reweight(Queries queries, Weights weights, const unsigned char* bins, size_t stride, const unsigned char* column,
             Control* control, Record record) {
  if (control->finished) return;
  const bool recentres = control->pending != 0;
  const int bin = control->bin;
  const double up_factor = control->up_factor, down_factor = control->down_factor;
  if (column == nullptr) column = bins + static_cast<size_t>(control->feature) * stride;
  for (int q = first_query(); q < queries.n_queries; q += query_step()) {
    const int first = __ldg(&queries.query_segments[q]), last = __ldg(&queries.query_segments[q + 1]);
    apply_and_sum(queries, weights, first, last, column, bin, up_factor, down_factor);
    if (recentres) {
      choose_exponents(queries, weights, first, last);
      offer_common(weights, first, last, control);
    } else {
      scan_levels(queries, weights, q, first, last);
    }
  }
  if (recentres || !last_block(control)) return;
  const double total = sum_shares(weights.share, queries.n_queries);
  if (threadIdx.x != 0) return;
  control->total = total;
  write_record(control, record);
}

__global__ void __launch_bounds__(256) recentre(Queries queries, Weights weights, Control* control, Record record) {
  if (control->finished || control->pending == 0) return;
  const int common = control->next_common;
  for (int q = first_query(); q < queries.n_queries; q += query_step()) {
    const int first = __ldg(&queries.query_segments[q]), last = __ldg(&queries.query_segments[q + 1]);
    level_ratios(queries, weights, q, first, last, common);
    apply_and_sum(queries, weights, first, last, nullptr, 0, 1.0, 1.0);
    scan_levels(queries, weights, q, first, last);
  }
  if (!last_block(control)) return;
  const double total = sum_shares(weights.share, queries.n_queries);
  if (threadIdx.x != 0) return;
  control->common = common;
  control->total = total;
  if (control->pending == 1) write_record(control, record);
  control->pending = 0;
}

}  // extern "C"
