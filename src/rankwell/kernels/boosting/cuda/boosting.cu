// RankBoost: whole rounds on the device. Five kernels a round, none of which the host waits for:
//
//   potentials      π of every document, in units of 2^−30
//   histograms      Σ π by feature and bin
//   choose          integral histograms, the best weak ranker, e^{±α}
//   reweight        e^{±H} where h = 1, sums by label level, Z, and the round's record
//   recentre        every 32nd round, in place of the sums of `reweight`: new powers of two first
//
// Vocabulary and precision are those of `contract.py` and `precision.py`. Sums in float64 run in the
// same order as on the CPU and are never contracted into fused operations, all others are integers: the rounds have the
// same bits as the CPU's.

#ifndef GROUP
#define GROUP 5  // features whose histograms a block holds
#endif
#ifndef COLUMNS
#define COLUMNS 32  // copies of a histogram, one a lane, so that a warp's additions never meet in a bank
#endif
#ifndef THREADS
#define THREADS 1024  // of a block of `histograms`
#endif
#ifndef WIDTH
#define WIDTH 8  // lanes that work on a query: 8, or a whole warp of 32 where queries have many label levels
#endif

namespace {

constexpr int BINS = 256;
constexpr int TILE = 512;  // documents a warp takes at a time, 16 a lane
constexpr int QUERY_LANES = 1024;
constexpr int LARGEST_R = (1 << 30) - (1 << 10);
constexpr int RECENTRE_ROUNDS = 32;
constexpr int LARGEST_EXPONENT = 900;
constexpr double PI_UNIT = 1.0 / (1 << 30);
constexpr double SMALLEST_WEIGHT = 0x1p-1000;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

// Where the run stands; lies in device memory and is shared by all kernels.
struct Control {
  int finished;   // training ended by itself: every later kernel returns at once
  int round;      // rounds done, those before this run too
  int recorded;   // rounds written to the record since the host last took it
  int common;     // power of two that all pair weights were divided by
  int feature, bin, r;  // the weak ranker chosen last
  int pending;    // 1: this round's sums wait for `recentre`; 2: so do the sums before the first round
  int next_common;
  int arrived;    // blocks that are done; the last one finishes a kernel's work
  double total;   // Z
  double up_factor, down_factor;  // e^α, e^−α
};

struct Queries {
  const int* segment_ptr;
  const int* query_segments;
  const double* query_weight;
  const double* step;
  double carry;
  int n_queries;
};

struct Weights {
  double* up;
  double* down;
  int* up_exponent;
  int* down_exponent;
  double* up_ratio;
  double* down_ratio;
  double* bridge;
  double* up_sum;
  double* down_sum;
  double* below;
  double* above;
  double* share;
};

struct Record {
  int* feature;
  int* bin;
  int* r;
  int* common;
  double* total;
};

// π is stored so that the 16 documents of each lane of a warp are read as four coalesced 16-byte words.
__device__ __forceinline__ int pi_place(int doc) {
  return (doc & ~(TILE - 1)) | ((doc >> 2) & 3) << 7 | ((doc >> 4) & 31) << 2 | (doc & 3);
}

// Whether this block is the last of its kernel to get here; everything the others wrote is then visible to it.
__device__ bool last_block(Control* control) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(&control->arrived, 1) == static_cast<int>(gridDim.x) - 1;
    if (is_last) control->arrived = 0;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

__device__ __forceinline__ int warp_max(int value) {
  for (int apart = 16; apart > 0; apart /= 2) value = max(value, __shfl_xor_sync(WHOLE_WARP, value, apart));
  return value;
}

// The lanes of this thread's query, and of its segment of eight.
__device__ __forceinline__ unsigned query_lanes() { return WIDTH == 32 ? WHOLE_WARP : 0xffu << (threadIdx.x & 24); }
__device__ __forceinline__ unsigned segment_lanes() { return 0xffu << (threadIdx.x & 24); }
__device__ __forceinline__ int first_segment(int first) { return first + (threadIdx.x & (WIDTH - 1)) / 8; }
__device__ __forceinline__ int first_query() { return (blockIdx.x * blockDim.x + threadIdx.x) / WIDTH; }
__device__ __forceinline__ int query_step() { return gridDim.x * blockDim.x / WIDTH; }

__device__ __forceinline__ double eight_lane_sum(double value, unsigned mask) {
  value = __dadd_rn(value, __shfl_xor_sync(mask, value, 4));
  value = __dadd_rn(value, __shfl_xor_sync(mask, value, 2));
  return __dadd_rn(value, __shfl_xor_sync(mask, value, 1));
}

__device__ __forceinline__ double eight_lane_max(double value, unsigned mask) {
  value = fmax(value, __shfl_xor_sync(mask, value, 4));
  value = fmax(value, __shfl_xor_sync(mask, value, 2));
  return fmax(value, __shfl_xor_sync(mask, value, 1));
}

// e^{±H} of a query's documents where h = 1 times e^{±α}; A_l and B_l of its segments. Eight lanes a segment; a lane loads
// four of its documents before it stores any, since the compiler must assume that a store could change the next load.
__device__ void apply_and_sum(const Queries& queries, const Weights& weights, int first, int last,
                              const unsigned char* column, int bin, double up_factor, double down_factor) {
  const int lane = threadIdx.x & 7;
  const unsigned mask = segment_lanes();
  for (int s = first_segment(first); s < last; s += WIDTH / 8) {
    const int end = __ldg(&queries.segment_ptr[s + 1]);
    double up_sum = 0.0, down_sum = 0.0;
    for (int start = __ldg(&queries.segment_ptr[s]) + lane; start < end; start += 32) {
      double up[4], down[4];
      bool is_above[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int i = start + 8 * k;
        is_above[k] = i < end && column != nullptr && __ldg(&column[i]) > bin;
        up[k] = i < end ? weights.up[i] : 0.0;
        down[k] = i < end ? weights.down[i] : 0.0;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int i = start + 8 * k;
        if (is_above[k]) {
          up[k] = fmax(__dmul_rn(up[k], up_factor), SMALLEST_WEIGHT);
          down[k] = fmax(__dmul_rn(down[k], down_factor), SMALLEST_WEIGHT);
          weights.up[i] = up[k];
          weights.down[i] = down[k];
        }
        up_sum = __dadd_rn(up_sum, up[k]);
        down_sum = __dadd_rn(down_sum, down[k]);
      }
    }
    __syncwarp(mask);
    up_sum = eight_lane_sum(up_sum, mask);
    down_sum = eight_lane_sum(down_sum, mask);
    if (lane == 0) {
      weights.up_sum[s] = up_sum;
      weights.down_sum[s] = down_sum;
    }
  }
  __syncwarp(query_lanes());
}

// Running sums over a query's levels, in the order of `scan_levels` on the CPU; WIDTH levels are loaded at a time, and
// every lane of the query follows the recurrence over them.
__device__ void scan_levels(const Queries& queries, const Weights& weights, int q, int first, int last) {
  const int lane = threadIdx.x & (WIDTH - 1);
  const unsigned mask = query_lanes();
  double plain = 0.0, weighted = 0.0, share = 0.0;
  if (lane == 0) {
    weights.below[first] = 0.0;
    weights.above[last - 1] = 0.0;
  }
  for (int start = first + 1; start < last; start += WIDTH) {
    const int s = start + lane, n = min(WIDTH, last - start);
    double ratio = 0.0, entering = 0.0, step = 0.0, down_sum = 0.0, mine = 0.0;
    if (s < last) {
      ratio = weights.down_ratio[s];
      entering = __dmul_rn(weights.up_sum[s - 1], weights.bridge[s]);
      step = queries.step[s];
      down_sum = weights.down_sum[s];
    }
    for (int j = 0; j < n; ++j) {
      const double ratio_j = __shfl_sync(mask, ratio, j, WIDTH);
      plain = __dadd_rn(__dmul_rn(plain, ratio_j), __shfl_sync(mask, entering, j, WIDTH));
      weighted = __dadd_rn(__dmul_rn(weighted, __dmul_rn(ratio_j, queries.carry)),
                           __dmul_rn(__shfl_sync(mask, step, j, WIDTH), plain));
      share = __dadd_rn(share, __dmul_rn(__shfl_sync(mask, down_sum, j, WIDTH), weighted));
      if (lane == j) mine = weighted;
    }
    if (s < last) weights.below[s] = mine;
  }
  plain = weighted = 0.0;
  for (int end = last - 1; end > first; end -= WIDTH) {
    const int s = end - lane, n = min(WIDTH, end - first);
    double ratio = 0.0, entering = 0.0, step = 0.0, mine = 0.0;
    if (s > first) {
      ratio = weights.up_ratio[s];
      entering = __dmul_rn(weights.down_sum[s], weights.bridge[s]);
      step = queries.step[s];
    }
    for (int j = 0; j < n; ++j) {
      const double ratio_j = __shfl_sync(mask, ratio, j, WIDTH);
      plain = __dadd_rn(__dmul_rn(plain, ratio_j), __shfl_sync(mask, entering, j, WIDTH));
      weighted = __dadd_rn(__dmul_rn(weighted, __dmul_rn(ratio_j, queries.carry)),
                           __dmul_rn(__shfl_sync(mask, step, j, WIDTH), plain));
      if (lane == j) mine = weighted;
    }
    if (s > first) weights.above[s - 1] = mine;
  }
  if (lane == 0) weights.share[q] = share;
}

// Scale values[start:end] by a power of two so that the largest is in [0.5, 1); returns the power taken out.
__device__ int rescale(double* values, int start, int end, int lane, unsigned mask) {
  double largest = 0.0;
  for (int i = start + lane; i < end; i += 8) largest = fmax(largest, values[i]);
  __syncwarp(mask);
  int exponent;
  frexp(eight_lane_max(largest, mask), &exponent);
  const double scale = ldexp(1.0, -exponent);
  for (int i = start + lane; i < end; i += 8) values[i] = fmax(__dmul_rn(values[i], scale), SMALLEST_WEIGHT);
  return exponent;
}

__device__ void choose_exponents(const Queries& queries, const Weights& weights, int first, int last) {
  const int lane = threadIdx.x & 7;
  const unsigned mask = segment_lanes();
  for (int s = first_segment(first); s < last; s += WIDTH / 8) {
    const int start = queries.segment_ptr[s], end = queries.segment_ptr[s + 1];
    const int up = rescale(weights.up, start, end, lane, mask);
    const int down = rescale(weights.down, start, end, lane, mask);
    if (lane == 0) {
      weights.up_exponent[s] += up;
      weights.down_exponent[s] -= down;
    }
  }
  __syncwarp(query_lanes());
}

// The largest power of two among the query's pair weights, put into `next_common`.
__device__ void offer_common(const Weights& weights, int first, int last, Control* control) {
  const int lane = threadIdx.x & (WIDTH - 1);
  const unsigned mask = query_lanes();
  int carried = weights.up_exponent[first], most = -2147483647 - 1;
  for (int start = first + 1; start < last; start += WIDTH) {
    const int s = start + lane;
    int running = s < last ? weights.up_exponent[s] : -(1 << 30);
    for (int apart = 1; apart < WIDTH; apart *= 2) {
      const int other = __shfl_up_sync(mask, running, apart, WIDTH);
      if (lane >= apart) running = max(running, other);
    }
    int below = __shfl_up_sync(mask, running, 1, WIDTH);
    below = lane == 0 ? carried : max(below, carried);
    if (s < last) most = max(most, below - weights.down_exponent[s]);
    carried = max(carried, __shfl_sync(mask, running, WIDTH - 1, WIDTH));
  }
  for (int apart = WIDTH / 2; apart > 0; apart /= 2) most = max(most, __shfl_xor_sync(mask, most, apart, WIDTH));
  if (lane == 0) atomicMax(&control->next_common, most);
}

// The factors between neighbouring levels of a query.
__device__ void level_ratios(const Queries& queries, const Weights& weights, int q, int first, int last, int common) {
  const double weight = queries.query_weight[q];
  for (int s = first + 1 + (threadIdx.x & (WIDTH - 1)); s < last; s += WIDTH) {
    const int up = weights.up_exponent[s], down = weights.down_exponent[s];
    const int up_below = weights.up_exponent[s - 1], down_below = weights.down_exponent[s - 1];
    weights.up_ratio[s] = ldexp(1.0, min(up_below - up, LARGEST_EXPONENT));
    weights.down_ratio[s] = ldexp(1.0, min(down_below - down, LARGEST_EXPONENT));
    weights.bridge[s] = ldexp(weight, up_below - down - common);
  }
  __syncwarp(query_lanes());
}

// Z from the queries' shares: 1,024 lanes, four a thread of a block of 256, then halves onto halves.
__device__ double sum_shares(const double* share, int n_queries) {
  __shared__ double lanes[QUERY_LANES];
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
#pragma unroll 4
  for (int start = threadIdx.x; start < n_queries; start += QUERY_LANES) {
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int q = start + part * 256;
      if (q < n_queries) sum[part] = __dadd_rn(sum[part], __ldcg(&share[q]));
    }
  }
#pragma unroll
  for (int part = 0; part < 4; ++part) lanes[threadIdx.x + part * 256] = sum[part];
  __syncthreads();
  for (int half = QUERY_LANES / 2; half > 0; half /= 2) {
    for (int lane = threadIdx.x; lane < half; lane += blockDim.x) {
      lanes[lane] = __dadd_rn(lanes[lane], lanes[lane + half]);
    }
    __syncthreads();
  }
  return lanes[0];
}

__device__ void write_record(Control* control, const Record& record) {
  const int k = control->recorded;
  record.feature[k] = control->feature;
  record.bin[k] = control->bin;
  record.r[k] = control->r;
  record.common[k] = control->common;
  record.total[k] = control->total;
  control->recorded = k + 1;
  control->round += 1;
  if (abs(control->r) >= LARGEST_R) control->finished = 1;
}

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

__global__ void __launch_bounds__(256)
potentials(Queries queries, Weights weights, const Control* control, int* pi) {
  if (control->finished) return;
  const int lane = threadIdx.x & 7;
  const double scale = __ddiv_rn(1073741824.0, control->total);
  for (int q = first_query(); q < queries.n_queries; q += query_step()) {
    const int first = __ldg(&queries.query_segments[q]), last = __ldg(&queries.query_segments[q + 1]);
    int left_over = 0;
    for (int s = first_segment(first); s < last; s += WIDTH / 8) {
      // Nothing but π is written here, so every load may run ahead of the stores.
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

// The blocks share out the documents of all feature groups evenly, so a block works on one or two groups. A lane adds
// into a column of its own; the columns are added up when the block leaves a group.
// bins : [n_features][16 · n_words] bytes, of features first_feature, ...; out : [n_features][256], of all features
__global__ void __launch_bounds__(THREADS)
histograms(const uint4* __restrict__ bins, const int4* __restrict__ pi, int n_words, int n_features, int first_feature,
           const Control* control, int* out) {
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
        // A group beyond the last feature reads the last one again and adds nothing of it to `out`.
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

// One block of 256 threads a feature: r(f, b) = Σ_{a > b} Hist_f(a); the last block to be done takes the lowest feature,
// then bin, whose |r| is within `margin` of the largest. `histogram` is left at 0 for the next round.
__global__ void __launch_bounds__(256)
choose(int* histogram, int n_features, int n_bins, int margin, int* table, int* largest, Control* control) {
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
  control->up_factor = __dsqrt_rn(__ddiv_rn(plus, minus));
  control->down_factor = __dsqrt_rn(__ddiv_rn(minus, plus));
  control->pending = (control->round + 1) % RECENTRE_ROUNDS == 0;
  control->next_common = -2147483647 - 1;
}

// column : the chosen feature's bins where they are not in `bins`, else null
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

__global__ void __launch_bounds__(256)
recentre(Queries queries, Weights weights, Control* control, Record record) {
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
