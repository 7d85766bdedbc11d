// Model evaluation on the device: documents beside each other in memory, so that every read of a warp is one line.
//
//   transpose          rows (document after document) to columns (feature after feature)
//   bin_columns        tested columns to bins, four bin columns a 32-bit word
//   walk_trees         trees, a run of SUM_RUN at a time, their nodes in shared memory; leaf values, or sums of runs
//   *_inputs           the other kinds of inputs, one input a row of blocks: no warp mixes kinds
//   dense, dense_tiles, sum_runs, add_runs   layers
//
// `stride` is the number of documents rounded up to 32: element (i, d) of any array lies at i * stride + d. Sums run in
// the order of `rules.py`; products and sums are never contracted, so they are the CPU's bits.
//
// Macros: WORD  a node to walk by, [column | child | bin]: unsigned int, or unsigned long long where the fields need it

#include "declarations.h"  // made by kernels/scoring/declarations.py
#include "float32.cuh"

namespace {

// Trees that a thread walks side by side: one waits for memory while the other computes.
constexpr int TREES_AT_ONCE = 2;
constexpr int DENSE_DOCS = 32;  // documents a block of `dense` works on, one a lane
constexpr int DENSE_WARPS = 8;
constexpr int DENSE_RUNS = 16;  // runs whose sums are held at a time

__device__ int count_below(const float* ascending, long long length, double x) {
  int count = 0;
  while (length > 1) {
    const long long half = length >> 1;
    count += widen(ascending[count + half - 1]) < x ? static_cast<int>(half) : 0;
    length -= half;
  }
  return length == 1 && widen(ascending[count]) < x ? count + 1 : count;
}

__device__ double in_categories(const int* categories, long long length, double x) {
  if (isnan(x)) return x;
  if (!(x >= 0.0 && x < 2147483648.0)) return 0.0;
  const int wanted = static_cast<int>(x);
  for (long long i = 0; i < length; ++i) {
    if (categories[i] == wanted) return 1.0;
  }
  return 0.0;
}

__device__ double activate(double x, int activation) {
  switch (activation) {
    case ACTIVATION_SIGMOID:
      return x >= 0.0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x));
    case ACTIVATION_RELU:
      return x > 0.0 ? x : 0.0;
    case ACTIVATION_TANH:
      return tanh(x);
    case ACTIVATION_EXP:
      return exp(x);
    default:
      return x;
  }
}

__device__ double of_one(int operation, double x) {
  switch (operation) {
    case NEGATE:
      return -x;
    case ABSOLUTE:
      return fabs(x);
    case LOG:
      return log(x);
    case LOG1P:
      return log1p(x);
    case EXP:
      return exp(x);
    case SQRT:
      return sqrt(x);
    default:
      return isnan(x) ? 1.0 : 0.0;
  }
}

__device__ double of_two(int operation, double x, double y) {
  switch (operation) {
    case ADD:
      return __dadd_rn(x, y);
    case SUBTRACT:
      return __dsub_rn(x, y);
    case MULTIPLY:
      return __dmul_rn(x, y);
    case DIVIDE:
      return x / y;
    case POWER:
      return pow(x, y);
    case LESS:
      return x < y;
    case LESS_EQUAL:
      return x <= y;
    case GREATER:
      return x > y;
    case GREATER_EQUAL:
      return x >= y;
    case EQUAL:
      return x == y;
    case NOT_EQUAL:
      return x != y;
    default:
      if (isnan(x) || isnan(y)) return x + y;
      return operation == MINIMUM ? fmin(x, y) : fmax(x, y);
  }
}

}  // namespace

// grid (documents / 32, features / 32), block (32, 8)
extern "C" __global__ void transpose(const float* rows, long long n_docs, int n_features, long long stride,
                                     float* columns) {
  __shared__ float tile[TILE][TILE + 1];
  const long long first_doc = static_cast<long long>(blockIdx.x) * TILE;
  const int first_feature = blockIdx.y * TILE;
  for (int i = threadIdx.y; i < TILE; i += blockDim.y) {
    const long long doc = first_doc + i;
    const int feature = first_feature + threadIdx.x;
    if (doc < n_docs && feature < n_features) tile[i][threadIdx.x] = rows[doc * n_features + feature];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < TILE; i += blockDim.y) {
    const int feature = first_feature + i;
    if (first_doc + threadIdx.x < n_docs && feature < n_features) {
      columns[feature * stride + first_doc + threadIdx.x] = tile[threadIdx.x][i];
    }
  }
}

// grid (documents / block, tested columns)
extern "C" __global__ void bin_columns(const float* columns, long long n_docs, long long stride, const int* feature,
                                       const unsigned char* kind, const long long* category_ptr, const int* categories,
                                       const long long* threshold_ptr, const float* thresholds,
                                       const long long* bin_ptr, const int* first_rank,
                                       const unsigned char* missing_bin, float nearly_zero, unsigned char* bins) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int c = blockIdx.y;
  if (doc >= n_docs) return;
  double x = widen(columns[feature[c] * stride + doc]);
  if (kind[c] == ZERO_IS_MISSING && fabs(x) <= nearly_zero) x = nan("");
  if (kind[c] == IN_CATEGORIES)
    x = in_categories(categories + category_ptr[c], category_ptr[c + 1] - category_ptr[c], x);
  const int rank = count_below(thresholds + threshold_ptr[c], threshold_ptr[c + 1] - threshold_ptr[c], x);
  for (long long b = bin_ptr[c]; b < bin_ptr[c + 1]; ++b) {
    const int bin = isnan(x) ? missing_bin[b] : min(max(rank - first_rank[b], 0), 255);
    bins[((b >> 2) * stride + doc) * 4 + (b & 3)] = static_cast<unsigned char>(bin);
  }
}

// One document a thread, one run of trees after another. grid (documents / block, runs shared out).
// Shared memory: the block's bins (bin words x block) where SHARE_BINS, then a run's words where SHARE_WORDS.
template <bool SHARE_BINS, bool SHARE_WORDS>
__device__ void walk_runs(const unsigned* bins, long long n_docs, long long stride, int n_bin_words,
                          const long long* word_ptr, const WORD* words, const double* word_value, int child_shift,
                          unsigned child_mask, int n_trees, int write_values, double* out) {
  extern __shared__ unsigned long long shared[];
  const long long first_doc = static_cast<long long>(blockIdx.x) * blockDim.x;
  const long long doc = min(first_doc + threadIdx.x, n_docs - 1);
  const bool is_real = first_doc + threadIdx.x < n_docs;
  unsigned* shared_bins = reinterpret_cast<unsigned*>(shared);
  if (SHARE_BINS) {
    // A lane reads and writes its own column only: no barrier is needed, and no two lanes ever meet in a bank.
    for (int b = 0; b < n_bin_words; ++b) shared_bins[b * blockDim.x + threadIdx.x] = bins[b * stride + doc];
  }
  WORD* shared_words = reinterpret_cast<WORD*>(shared_bins + (SHARE_BINS ? n_bin_words * blockDim.x : 0));
  const int n_runs = (n_trees + SUM_RUN - 1) / SUM_RUN;
  for (int run = blockIdx.y; run < n_runs; run += gridDim.y) {
    const int first_tree = run * SUM_RUN, end_tree = min(first_tree + SUM_RUN, n_trees);
    const long long first_word = word_ptr[first_tree];
    if (SHARE_WORDS) {
      const int n_words = static_cast<int>(word_ptr[end_tree] - first_word);
      __syncthreads();
      for (int i = threadIdx.x; i < n_words; i += blockDim.x) shared_words[i] = words[first_word + i];
      __syncthreads();
    }
    double sum = 0.0;
    for (int tree = first_tree; tree < end_tree; tree += TREES_AT_ONCE) {
      unsigned root[TREES_AT_ONCE];  // in words from the run's first
      unsigned place[TREES_AT_ONCE] = {};
      WORD word[TREES_AT_ONCE];
      unsigned leaves = LEAF;
#pragma unroll
      for (int t = 0; t < TREES_AT_ONCE; ++t) {
        root[t] = static_cast<unsigned>(word_ptr[min(tree + t, end_tree - 1)] - first_word);
        word[t] = SHARE_WORDS ? shared_words[root[t]] : words[first_word + root[t]];
        leaves &= static_cast<unsigned>(word[t]);
      }
      // A leaf's word leads to itself, so a tree that is done waits there for the others.
      while (leaves != LEAF) {
        leaves = LEAF;
#pragma unroll
        for (int t = 0; t < TREES_AT_ONCE; ++t) {
          const unsigned column = static_cast<unsigned>(word[t] >> child_shift);
          const unsigned four =
              SHARE_BINS ? shared_bins[(column >> 2) * blockDim.x + threadIdx.x] : bins[(column >> 2) * stride + doc];
          const unsigned bin = four >> (8 * (column & 3)) & 255u;
          place[t] = (static_cast<unsigned>(word[t] >> 8) & child_mask) + (bin > (word[t] & LEAF) ? 1u : 0u);
          word[t] = SHARE_WORDS ? shared_words[root[t] + place[t]] : words[first_word + root[t] + place[t]];
          leaves &= static_cast<unsigned>(word[t]);
        }
      }
#pragma unroll
      for (int t = 0; t < TREES_AT_ONCE; ++t) {
        if (tree + t >= end_tree) break;
        const double value = word_value[first_word + root[t] + place[t]];
        if (write_values) {
          if (is_real) out[(tree + t) * stride + doc] = value;
        } else {
          sum = __dadd_rn(sum, value);
        }
      }
    }
    if (!write_values && is_real) out[run * stride + doc] = sum;
  }
}

extern "C" __global__ void walk_trees(const unsigned* bins, long long n_docs, long long stride, int n_bin_words,
                                      const long long* word_ptr, const WORD* words, const double* word_value,
                                      int child_shift, unsigned child_mask, int n_trees, int share_bins,
                                      int share_words, int write_values, double* out) {
  // Which memory is meant is known where the loops are compiled: an address that may be either costs twice as much.
#define WALK(SHARE_BINS, SHARE_WORDS)                                                                             \
  walk_runs<SHARE_BINS, SHARE_WORDS>(bins, n_docs, stride, n_bin_words, word_ptr, words, word_value, child_shift, \
                                     child_mask, n_trees, write_values, out)
  if (share_bins && share_words) {
    WALK(true, true);
  } else if (share_bins) {
    WALK(true, false);
  } else if (share_words) {
    WALK(false, true);
  } else {
    WALK(false, false);
  }
#undef WALK
}

// grid (documents / block, inputs); logarithmic: 0 for linear inputs, 1 for log-linear ones
extern "C" __global__ void line_inputs(const float* columns, long long n_docs, long long stride, const int* feature,
                                       const double* scale, const double* offset, const double* missing,
                                       int logarithmic, double* out) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  const int i = blockIdx.y;
  const double x = widen(columns[feature[i] * stride + doc]);
  double value = missing[i];
  if (logarithmic) {
    if (x > -1.0) value = __dadd_rn(__dmul_rn(scale[i], log1p(x)), offset[i]);
  } else if (!isnan(x)) {
    value = __dadd_rn(__dmul_rn(scale[i], x), offset[i]);
  }
  out[i * stride + doc] = value;
}

// grid (documents / block, inputs)
extern "C" __global__ void bucket_inputs(const float* columns, long long n_docs, long long stride, const int* feature,
                                         const long long* edge_ptr, const float* edges, const double* values,
                                         const double* missing, double* out) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  const int i = blockIdx.y;
  const double x = widen(columns[feature[i] * stride + doc]);
  const long long first = edge_ptr[i];
  out[i * stride + doc] =
      isnan(x) ? missing[i] : values[first + i + count_below(edges + first, edge_ptr[i + 1] - first, x)];
}

// grid (documents / block, inputs)
extern "C" __global__ void expression_inputs(const float* columns, long long n_docs, long long stride,
                                             const long long* program_ptr, const int* operation, const int* operand,
                                             const long long* constant_ptr, const double* constants,
                                             const double* missing, double* out) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  const int i = blockIdx.y;
  double stack[LARGEST_STACK];
  int top = -1;
  for (long long place = program_ptr[i]; place < program_ptr[i + 1]; ++place) {
    const int what = operation[place];
    if (what == CONSTANT) {
      stack[++top] = constants[constant_ptr[i] + operand[place]];
    } else if (what == FEATURE) {
      stack[++top] = widen(columns[operand[place] * stride + doc]);
    } else if (what == IF) {
      top -= 2;
      const bool holds = stack[top] != 0.0 && !isnan(stack[top]);
      stack[top] = holds ? stack[top + 1] : stack[top + 2];
    } else if (what == NEGATE || what >= ABSOLUTE) {
      stack[top] = of_one(what, stack[top]);
    } else {
      --top;
      stack[top] = of_two(what, stack[top], stack[top + 1]);
    }
  }
  out[i * stride + doc] = isfinite(stack[0]) ? stack[0] : missing[i];
}

// Dense layers: `weights` lies as (inputs, padded units), units padded to 8 with zeros, so that a warp's 8 weights of
// one input are one read for all its lanes. Both kernels keep the order of sums; which one is faster depends on the
// sizes.

// Few units or few documents. grid (documents / 32, units / 8), block (32, 8): a warp sums runs of inputs for 32
// documents and 8 units, then one warp a unit adds the runs in their order.
extern "C" __global__ void dense(const double* values, long long n_docs, long long stride, int n_in, int n_out,
                                 int n_padded, const double* weights, const double* bias, int activation, double* out) {
  __shared__ double sums[DENSE_RUNS][DENSE_UNITS][DENSE_DOCS];
  const int lane = threadIdx.x, warp = threadIdx.y;
  const long long doc = static_cast<long long>(blockIdx.x) * DENSE_DOCS + lane;
  const long long readable = min(doc, n_docs - 1);
  const int first_unit = blockIdx.y * DENSE_UNITS;
  const int n_runs = (n_in + SUM_RUN - 1) / SUM_RUN;
  double total = 0.0;
  for (int first_run = 0; first_run < n_runs; first_run += DENSE_RUNS) {
    const int held = min(DENSE_RUNS, n_runs - first_run);
    for (int run = warp; run < held; run += DENSE_WARPS) {
      double sum[DENSE_UNITS] = {};
      const int begin = (first_run + run) * SUM_RUN, end = min(begin + SUM_RUN, n_in);
      for (int i = begin; i < end; ++i) {
        const double value = values[i * stride + readable];
        const double* of_input = weights + static_cast<long long>(i) * n_padded + first_unit;
#pragma unroll
        for (int u = 0; u < DENSE_UNITS; ++u) sum[u] = __dadd_rn(sum[u], __dmul_rn(of_input[u], value));
      }
#pragma unroll
      for (int u = 0; u < DENSE_UNITS; ++u) sums[run][u][lane] = sum[u];
    }
    __syncthreads();
    for (int run = 0; run < held; ++run) total = __dadd_rn(total, sums[run][warp][lane]);
    __syncthreads();
  }
  const int unit = first_unit + warp;
  if (doc < n_docs && unit < n_out) out[unit * stride + doc] = activate(__dadd_rn(total, bias[unit]), activation);
}

// Many units and documents. grid (documents / 64, units / 16), block (32, 2): a warp sums 8 units of 64 documents, run
// after run; a run's weights of the block's 16 units lie in shared memory. What bounds it is what a processor can read
// from shared memory: 8 + LANE_DOCS numbers for 8 · LANE_DOCS products.
extern "C" __global__ void dense_tiles(const double* values, long long n_docs, long long stride, int n_in, int n_out,
                                       int n_padded, const double* weights, const double* bias, int activation,
                                       double* out) {
  __shared__ __align__(16) double tile[SUM_RUN][TILE_UNITS];
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int first_tile_unit = blockIdx.y * TILE_UNITS;
  long long doc[LANE_DOCS], readable[LANE_DOCS];
#pragma unroll
  for (int d = 0; d < LANE_DOCS; ++d) {
    doc[d] = (static_cast<long long>(blockIdx.x) * LANE_DOCS + d) * 32 + lane;
    readable[d] = min(doc[d], n_docs - 1);
  }
  double total[LANE_DOCS][DENSE_UNITS] = {};
  for (int first = 0; first < n_in; first += SUM_RUN) {
    const int held = min(SUM_RUN, n_in - first);
    __syncthreads();
    for (int k = warp * 32 + lane; k < held * TILE_UNITS; k += TILE_WARPS * 32) {
      const int i = k / TILE_UNITS, unit = first_tile_unit + k % TILE_UNITS;
      tile[i][k % TILE_UNITS] = unit < n_padded ? weights[static_cast<long long>(first + i) * n_padded + unit] : 0.0;
    }
    __syncthreads();
    double sum[LANE_DOCS][DENSE_UNITS] = {};
#pragma unroll 8
    for (int i = 0; i < held; ++i) {
#pragma unroll
      for (int d = 0; d < LANE_DOCS; ++d) {
        const double value = values[(first + i) * stride + readable[d]];
#pragma unroll
        for (int u = 0; u < DENSE_UNITS; ++u) {
          sum[d][u] = __dadd_rn(sum[d][u], __dmul_rn(tile[i][warp * DENSE_UNITS + u], value));
        }
      }
    }
#pragma unroll
    for (int d = 0; d < LANE_DOCS; ++d) {
#pragma unroll
      for (int u = 0; u < DENSE_UNITS; ++u) total[d][u] = __dadd_rn(total[d][u], sum[d][u]);
    }
  }
#pragma unroll
  for (int d = 0; d < LANE_DOCS; ++d) {
#pragma unroll
    for (int u = 0; u < DENSE_UNITS; ++u) {
      const int unit = first_tile_unit + warp * DENSE_UNITS + u;
      if (doc[d] >= n_docs || unit >= n_out) continue;
      out[unit * stride + doc[d]] = activate(__dadd_rn(total[d][u], bias[unit]), activation);
    }
  }
}

// The sum of each run of inputs. grid (documents / block, runs)
extern "C" __global__ void sum_runs(const double* values, long long n_docs, long long stride, int n_in, double* out) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  const int begin = blockIdx.y * SUM_RUN, end = min(begin + SUM_RUN, n_in);
  double sum = 0.0;
  for (int i = begin; i < end; ++i) sum = __dadd_rn(sum, values[i * stride + doc]);
  out[blockIdx.y * stride + doc] = sum;
}

// The sums of runs, added in their order, divided by `divisor`, plus `bias`. grid (documents / block)
extern "C" __global__ void add_runs(const double* runs, long long n_docs, long long stride, int n_runs, double divisor,
                                    double bias, double* out) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  double total = 0.0;
  for (int run = 0; run < n_runs; ++run) total = __dadd_rn(total, runs[run * stride + doc]);
  out[doc] = __dadd_rn(total / divisor, bias);
}
