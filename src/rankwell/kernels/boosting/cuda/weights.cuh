// e^{±H} of documents, and their sums by label level, query and over all queries.
//
// Macros: WIDTH  lanes that work on a query: 8, or a whole warp of 32 where queries have many label levels

#include "declarations.h"  // made by kernels/boosting/declarations.py

namespace {

constexpr unsigned WHOLE_WARP = 0xffffffffu;

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

// e^{±H} of a query's documents where h = 1 times e^{±α}; A_l and B_l of its segments. Eight lanes a segment; a lane
// loads four of its documents before it stores any, since the compiler must assume that a store could change the next
// load.
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

}  // namespace
