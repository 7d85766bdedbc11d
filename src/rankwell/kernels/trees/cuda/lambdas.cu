// Gradients and Hessians of pair losses: see `losses.py`. Every sum has the order of the CPU's (cpu/lambdas.py): a
// column adds rows in ascending order, and a row sums by 16 lanes, then lanes by halves. So gradients have the same
// bits.
//
// Queries of which several fit into a block's shared memory are worked on by one warp each, eight rows at a time: half
// of the warp has four of the rows and 16 columns, the other half the next four rows and the 16 columns before. A
// longer query has a block, which computes its pairs twice: once column by column, once row by row.
//
// Macro: KIND  the loss

#include "declarations.h"
#include "elementary_functions.cuh"
#include "teams.cuh"

namespace {

constexpr float LARGEST = 3.4028234663852886e38f;

// A query's documents. Keys, or what is sorted, are where sums are later.
struct Table {
  float4* places;              // by place: score, e^(σ·(score − best score)), gain, Y
  float2* sums;                // by place: gradient and Hessian
  int* key;                    // by document; of long queries only, as others have:
  unsigned long long* sorted;  // scores and documents, by score in the end
  int* place;                  // by document
  float* row_weight;           // by place, X; of map and mrr only
  float* row_total;            // by place, Σλ of a row; of long queries only
};

struct Row {
  Real score, inverse, gain, weight;
};

struct Sums {
  Real gradient, hessian, total;
};

struct Scale {
  Real slope, floor;
  int limit;
};

// Of a row beyond the limit the weight is lower than all others, so that its pairs add 0.
__device__ __forceinline__ Row row_at(const Table& table, int place, int n_docs, int limit) {
  const int there = min(place, n_docs - 1);
  const float4 own = table.places[there];
  const float weight = KIND > PAIRWISE ? table.row_weight[there] : KIND == PAIRWISE ? 1.0f : own.w;
  return {{own.x}, reciprocal({own.y}), {own.z}, {place < limit ? weight : -LARGEST}};
}

// What the pair of a row and a document so many places after it adds to the column's gradient, to the Hessian of both,
// and to Σλ. One that is not after it adds 0: all that its weight is multiplied by is finite, as e is below e^FARTHEST.
__device__ __forceinline__ Sums pair_of(const Queries& queries, const Scale& scale, const Row& row, float4 column,
                                        int distance) {
  const Real one = {1.0f}, difference = row.gain - Real{column.z};
  Real gap = positive_part(row.weight - Real{column.w});
  if (KIND == LAMBDALOSS && row.weight.value != -LARGEST) gap = gap + Real{queries.by_distance[max(distance, 0)]};
  if (distance <= 0) gap = {0.0f};
  Real size = size_of(difference);
  if (KIND == PAIRWISE) size = {is_positive(size) ? 1.0f : 0.0f};
  const Real e = Real{column.y} * row.inverse;
  const Real t = scale.slope * positive_part(row.score - Real{column.x}) + scale.floor;
  const Real inverse = reciprocal(t * (one + e));
  const Real w = (size * gap) * inverse, we = w * e;
  const Real value = is_positive(difference) ? we : w;
  return {with_sign_of(difference, value), we * (t * inverse), value};
}

__device__ __forceinline__ void add_to_row(Sums& row, const Sums& pair) {
  row.gradient = row.gradient + -pair.gradient;
  row.hessian = row.hessian + pair.hessian;
  row.total = row.total + pair.total;
}

// The sum of 16 lanes, low and high halves added.
__device__ __forceinline__ Real sum_of_half(Real sum) {
  for (int apart = PAIR_LANES / 2; apart > 0; apart /= 2) {
    sum = sum + Real{__shfl_xor_sync(WHOLE_WARP, sum.value, apart)};
  }
  return sum;
}

__device__ __forceinline__ void add_to_place(const Table& table, int place, Real gradient, Real hessian) {
  const float2 so_far = table.sums[place];
  table.sums[place] = make_float2((Real{so_far.x} + gradient).value, (Real{so_far.y} + hessian).value);
}

// Places by score: the higher ones first, of equal ones the earlier document. A block compares each key with all
// others; keys after the last are the lowest.
__device__ __forceinline__ void rank(const Team<true>& team, int n_docs, const Table& table) {
  const int4* fours = reinterpret_cast<const int4*>(table.key);
  for (int i = team.thread; i < n_docs; i += team.n_threads) {
    const int own = table.key[i], before = (i & -32) / 4, after = before + 8, end = (n_docs + 3) / 4;
    int place = 0;
#pragma unroll 4
    for (int j = 0; j < before; ++j) {
      const int4 keys = fours[j];
      place += (keys.x >= own) + (keys.y >= own) + (keys.z >= own) + (keys.w >= own);
    }
    for (int j = 4 * before; j < min(4 * after, n_docs); ++j) {
      place += table.key[j] > own || (table.key[j] == own && j < i);
    }
#pragma unroll 4
    for (int j = after; j < end; ++j) {
      const int4 keys = fours[j];
      place += (keys.x > own) + (keys.y > own) + (keys.z > own) + (keys.w > own);
    }
    table.place[i] = place;
  }
}

// Which of two numbers is kept: the lower one in the place that comes first, the higher one in the other.
__device__ __forceinline__ unsigned long long kept_of(unsigned long long own, unsigned long long other, bool is_first) {
  return (other < own) == is_first ? other : own;
}

__device__ __forceinline__ void put_in_order(unsigned long long& one, unsigned long long& other) {
  const unsigned long long lower = kept_of(one, other, true);
  other = kept_of(one, other, false);
  one = lower;
}

// Compare numbers that are `apart`, then half as far, and so on: a lane's bitonic sequences of 2·apart become sorted.
template <int OWN>
__device__ __forceinline__ void merge_own(unsigned long long (&own)[OWN], int apart) {
#pragma unroll
  for (; apart > 0; apart /= 2) {
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
      if ((i & apart) == 0) put_in_order(own[i], own[i + apart]);
    }
  }
}

// Sort up to 32·OWN numbers by bitonic merges, OWN consecutive ones to a lane: first each lane's, then those of 2, 4,
// ... lanes. A merge begins with a comparison of each number and the one at the mirrored place.
template <int OWN>
__device__ __forceinline__ void sort_in_registers(int lane, int n_docs, const Table& table) {
  unsigned long long own[OWN];
#pragma unroll
  for (int i = 0; i < OWN; ++i) own[i] = i * 32 + lane < n_docs ? table.sorted[i * 32 + lane] : ~0ull;
#pragma unroll
  for (int size = 2; size <= OWN; size *= 2) {
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
      if ((i ^ (size - 1)) > i) put_in_order(own[i], own[i ^ (size - 1)]);
    }
    merge_own(own, size / 4);
  }
#pragma unroll 1
  for (int lanes = 2; lanes <= 32; lanes *= 2) {
    unsigned long long other[OWN];
#pragma unroll
    for (int i = 0; i < OWN; ++i) other[i] = __shfl_xor_sync(WHOLE_WARP, own[OWN - 1 - i], lanes - 1);
#pragma unroll
    for (int i = 0; i < OWN; ++i) own[i] = kept_of(own[i], other[i], (lane & (lanes / 2)) == 0);
#pragma unroll 1
    for (int apart = lanes / 4; apart > 0; apart /= 2) {
#pragma unroll
      for (int i = 0; i < OWN; ++i) {
        own[i] = kept_of(own[i], __shfl_xor_sync(WHOLE_WARP, own[i], apart), (lane & apart) == 0);
      }
    }
    merge_own(own, OWN / 2);
  }
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    if (lane * OWN + i < n_docs) table.place[static_cast<unsigned>(own[i])] = lane * OWN + i;
  }
}

// Sort any number in shared memory, by Batcher's odd-even merges: 1, 2, 4, ... sorted documents become twice as many.
__device__ __forceinline__ void sort_in_memory(int lane, int n_docs, const Table& table) {
  unsigned long long* sorted = table.sorted;
#pragma unroll 1
  for (int size = 1; size < n_docs; size *= 2) {
#pragma unroll 1
    for (int apart = size; apart > 0; apart /= 2) {
      const int first = apart == size ? 0 : apart;
#pragma unroll 1
      for (int i = lane;; i += 32) {
        const int low = first + 2 * (i & -apart) + (i & (apart - 1)), high = low + apart;
        if (high >= n_docs) break;
        if (((low ^ high) & (-2 * size)) != 0) continue;
        const unsigned long long one = sorted[low], other = sorted[high];
        if (one > other) {
          sorted[low] = other;
          sorted[high] = one;
        }
      }
      __syncwarp();
    }
  }
  for (int place = lane; place < n_docs; place += 32) table.place[static_cast<unsigned>(sorted[place])] = place;
}

// A warp sorts them.
__device__ __forceinline__ void rank(const Team<false>& team, int n_docs, const Table& table) {
  if (n_docs <= 32 * 4) {
    sort_in_registers<4>(team.thread, n_docs, table);
  } else if (n_docs <= 32 * 8) {
    sort_in_registers<8>(team.thread, n_docs, table);
  } else {
    sort_in_memory(team.thread, n_docs, table);
  }
}

// X and Y of each place: those of map depend on all places before, those of mrr on the first relevant ones.
__device__ __forceinline__ void weigh_for_map(int n_docs, const Table& table) {
  double n_relevant = 0.0, harmonic = 0.0;
  for (int k = 0; k < n_docs; ++k) {
    const double relevant = table.places[k].z, place = k + 1.0;
    n_relevant = __dadd_rn(n_relevant, relevant);
    table.places[k].w = narrow(__dsub_rn(__ddiv_rn(n_relevant, place), harmonic));
    harmonic = __dadd_rn(harmonic, __ddiv_rn(relevant, place));
    const double others = __dadd_rn(n_relevant, __dsub_rn(1.0, relevant));
    table.row_weight[k] = narrow(__dsub_rn(__ddiv_rn(others, place), harmonic));
  }
}

__device__ __forceinline__ void weigh_for_mrr(int n_docs, const Table& table) {
  int first = n_docs, second = n_docs;
  for (int k = n_docs - 1; k >= 0; --k) {
    if (table.places[k].z > 0.0f) {
      second = first;
      first = k;
    }
  }
  for (int k = 0; k < n_docs; ++k) {
    table.row_weight[k] = k <= first ? narrow(__ddiv_rn(1.0, k + 1.0)) : -1.0f;
    const int alone = table.places[k].z > 0.0f ? first : min(k, second);
    table.places[k].w = narrow(__ddiv_rn(1.0, alone + 1.0));
  }
}

// The sums of PAIR_ROWS rows over the 16 lanes of a half of the warp, low and high halves added, as `sum_of_half`:
// lanes that are 8 apart exchange the sums of two rows for those of the other two, and so on. Lane l has those of row l
// / 4: `total`, and the gradient, or the Hessian if l & 2.
struct RowSum {
  Real gradient_or_hessian, total;
};

__device__ __forceinline__ Real exchanged(bool is_upper, Real lower, Real upper, int apart) {
  const Real kept = is_upper ? upper : lower, sent = is_upper ? lower : upper;
  return kept + Real{__shfl_xor_sync(WHOLE_WARP, sent.value, apart)};
}

__device__ __forceinline__ Sums exchanged(bool is_upper, const Sums& lower, const Sums& upper, int apart) {
  return {exchanged(is_upper, lower.gradient, upper.gradient, apart),
          exchanged(is_upper, lower.hessian, upper.hessian, apart),
          exchanged(is_upper, lower.total, upper.total, apart)};
}

__device__ __forceinline__ RowSum sum_rows(const Sums (&sums)[PAIR_ROWS], int lane) {
  static_assert(PAIR_ROWS == 4 && PAIR_LANES == 16, "four lanes have the sums of a row in the end");
  const Sums even = exchanged((lane & 8) != 0, sums[0], sums[2], 8),
             odd = exchanged((lane & 8) != 0, sums[1], sums[3], 8);
  const Sums row = exchanged((lane & 4) != 0, even, odd, 4);
  RowSum sum = {exchanged((lane & 2) != 0, row.gradient, row.hessian, 2), row.total};
  sum.total = sum.total + Real{__shfl_xor_sync(WHOLE_WARP, sum.total.value, 2)};
  sum.gradient_or_hessian =
      sum.gradient_or_hessian + Real{__shfl_xor_sync(WHOLE_WARP, sum.gradient_or_hessian.value, 1)};
  sum.total = sum.total + Real{__shfl_xor_sync(WHOLE_WARP, sum.total.value, 1)};
  return sum;
}

// Eight rows at a time with all columns, by a warp; returns Σλ. The half with the later four rows is one step behind,
// so that a column's sums have all earlier rows before it adds to them.
__device__ __forceinline__ double add_pairs(const Queries& queries, const Table& table, const Scale& scale, int n_docs,
                                            int thread) {
  const int lane = thread % PAIR_LANES, half = thread / PAIR_LANES;
  double total = 0.0;
#pragma unroll 1
  for (int first = 0; first < scale.limit; first += 2 * PAIR_ROWS) {
    const int own = first + half * PAIR_ROWS;
    Row rows[PAIR_ROWS];
    Sums sums[PAIR_ROWS] = {};
#pragma unroll
    for (int k = 0; k < PAIR_ROWS; ++k) rows[k] = row_at(table, own + k, n_docs, scale.limit);
    const int end = n_docs + (first + PAIR_ROWS < scale.limit ? PAIR_LANES : 0);
#pragma unroll 1
    for (int from = (first + 1) & -PAIR_LANES; from < end; from += PAIR_LANES) {
      const int at = from - half * PAIR_LANES + lane;
      const bool is_there = static_cast<unsigned>(at) < static_cast<unsigned>(n_docs);
      const int there = is_there ? at : 0, distance = is_there ? at - own : 0;
      const float4 column = table.places[there];
      const float2 so_far = is_there ? table.sums[there] : make_float2(0.0f, 0.0f);
      Real gradient = {so_far.x}, hessian = {so_far.y};
#pragma unroll
      for (int k = 0; k < PAIR_ROWS; ++k) {
        const Sums pair = pair_of(queries, scale, rows[k], column, distance - k);
        add_to_row(sums[k], pair);
        gradient = gradient + pair.gradient;
        hessian = hessian + pair.hessian;
      }
      if (is_there) table.sums[there] = make_float2(gradient.value, hessian.value);
      __syncwarp();
    }
    const RowSum sum = sum_rows(sums, lane);
    const int place = own + lane / PAIR_ROWS;
    if (lane % 2 == 0 && place < scale.limit) {
      float* of_place = lane & 2 ? &table.sums[place].y : &table.sums[place].x;
      *of_place = (Real{*of_place} + sum.gradient_or_hessian).value;
    }
#pragma unroll
    for (int k = 0; k < 2 * PAIR_ROWS; ++k) {
      total = __dadd_rn(total, widen(__shfl_sync(WHOLE_WARP, sum.total.value, 4 * k)));
    }
    __syncwarp();
  }
  return total;
}

// The same by a block: columns first, which add up all rows; then rows.
__device__ __forceinline__ double add_pairs_by_block(const Queries& queries, const Table& table, const Scale& scale,
                                                     int n_docs, const Team<true>& team) {
  for (int j = team.thread; j < n_docs; j += team.n_threads) {
    const float4 column = table.places[j];
    Real gradient = {0.0f}, hessian = {0.0f};
    for (int place = 0; place < min(scale.limit, j); ++place) {
      const Sums pair = pair_of(queries, scale, row_at(table, place, n_docs, scale.limit), column, j - place);
      gradient = gradient + pair.gradient;
      hessian = hessian + pair.hessian;
    }
    table.sums[j] = make_float2(gradient.value, hessian.value);
  }
  __syncthreads();
  const int lane = team.thread % PAIR_LANES, member = team.thread / PAIR_LANES, n_members = team.n_threads / PAIR_LANES;
  for (int first = 0; first < scale.limit; first += n_members) {
    const int place = first + member;
    const Row row = row_at(table, place, n_docs, scale.limit);
    Sums sums = {};
    // A row of the CPU's begins with the columns of its group of rows: those before its own place add 0.
    for (int j = (min(place, n_docs) & -PAIR_LANES) + lane; j < n_docs; j += PAIR_LANES) {
      add_to_row(sums, pair_of(queries, scale, row, table.places[j], j - place));
    }
    __syncwarp();
    const Real gradient = sum_of_half(sums.gradient), hessian = sum_of_half(sums.hessian);
    const Real of_row = sum_of_half(sums.total);
    if (lane == 0 && place < scale.limit) {
      add_to_place(table, place, gradient, hessian);
      table.row_total[place] = of_row.value;
    }
  }
  __syncthreads();
  double total = 0.0;
  for (int place = 0; place < scale.limit; ++place) total = __dadd_rn(total, widen(table.row_total[place]));
  return total;
}

// The orders of the best score, and of the worst with the opposite sign.
template <bool BLOCK>
__device__ __forceinline__ int2 read_scores(const Queries& queries, int start, int n_docs, const Team<BLOCK>& team,
                                            const Table& table) {
  int best = -2147483647, worst = best;
  for (int i = team.thread; i < (n_docs + 3) / 4 * 4; i += team.n_threads) {
    const int key = i < n_docs ? order_of(queries.scores[start + i]) : -2147483647 - 1;
    if (BLOCK) table.key[i] = key;
    if (i >= n_docs) continue;
    // The higher a key, the lower is what is sorted.
    const unsigned descending = ~(static_cast<unsigned>(key) ^ 0x80000000u);
    if (!BLOCK) table.sorted[i] = static_cast<unsigned long long>(descending) << 32 | static_cast<unsigned>(i);
    best = max(best, key);
    worst = max(worst, -key);
  }
  return make_int2(team.largest(best), team.largest(worst));
}

template <bool BLOCK>
__device__ __forceinline__ void fill_places(const Queries& queries, int start, int n_docs, int best,
                                            const Team<BLOCK>& team, const Table& table) {
  const Real sigma = {queries.sigma_32}, highest = {of_order(best)}, lowest = {static_cast<float>(-FARTHEST)};
  for (int i = team.thread; i < n_docs; i += team.n_threads) {
    const int place = table.place[i];
    const Real score = {queries.scores[start + i]};
    Real exponent = sigma * (score - highest);
    if (is_positive(lowest - exponent)) exponent = lowest;
    const float weight = KIND >= PAIRWISE ? 0.0f : queries.discount[place];
    table.places[place] = make_float4(score.value, exponential(exponent).value, queries.gain[start + i], weight);
  }
  team.meet();
  for (int k = team.thread; k < n_docs; k += team.n_threads) table.sums[k] = make_float2(0.0f, 0.0f);
  if (KIND == MAP && team.thread == 0) weigh_for_map(n_docs, table);
  if (KIND > MAP && team.thread == 0) weigh_for_mrr(n_docs, table);
  team.meet();
}

template <bool BLOCK>
__device__ __forceinline__ void query_gradients(const Queries& queries, int query, const Team<BLOCK>& team,
                                                const Table& table) {
  const int start = queries.query_ptr[query], n_docs = queries.query_ptr[query + 1] - start;
  const double inverse = queries.inverse[query];
  if (inverse <= 0.0) {
    for (int i = team.thread; i < n_docs; i += team.n_threads) {
      queries.gradient[start + i] = queries.hessian[start + i] = 0.0f;
    }
    return;
  }
  const int2 ends = read_scores(queries, start, n_docs, team, table);
  team.meet();
  rank(team, n_docs, table);
  team.meet();
  fill_places(queries, start, n_docs, ends.x, team, table);
  const bool by_scores = queries.normalize != 0 && ends.x != -ends.y;
  const Scale scale = {
      {by_scores ? 1.0f : 0.0f}, {by_scores ? static_cast<float>(NEAREST) : 1.0f}, min(queries.truncation, n_docs - 1)};
  double total;
  if constexpr (BLOCK) {
    total = add_pairs_by_block(queries, table, scale, n_docs, team);
  } else {
    total = add_pairs(queries, table, scale, n_docs, team.thread);
  }
  double factor = __dmul_rn(inverse, queries.sigma);
  total = __dmul_rn(__dmul_rn(2.0, total), factor);
  if (queries.normalize != 0 && total > 0.0) {
    factor = __dmul_rn(factor, __ddiv_rn(__ddiv_rn(logarithm(__dadd_rn(1.0, total)), LN_2), total));
  }
  const Real of_gradient = {narrow(factor)}, of_hessian = {narrow(__dmul_rn(factor, queries.sigma))};
  for (int i = team.thread; i < n_docs; i += team.n_threads) {
    const float2 sums = table.sums[table.place[i]];
    Real gradient = Real{sums.x} * of_gradient, hessian = Real{sums.y} * of_hessian;
    if (queries.has_weights) {
      gradient = gradient * Real{queries.weight[start + i]};
      hessian = hessian * Real{queries.weight[start + i]};
    }
    queries.gradient[start + i] = gradient.value;
    queries.hessian[start + i] = hessian.value;
  }
  team.meet();
}

// Arrays of `length` documents each, from document `offset` on, a multiple of 4.
__device__ __forceinline__ Table table_at(float* numbers, size_t length, int offset) {
  Table table;
  table.places = reinterpret_cast<float4*>(numbers) + offset;
  table.sums = reinterpret_cast<float2*>(numbers + 4 * length) + offset;
  table.key = reinterpret_cast<int*>(table.sums);
  table.sorted = reinterpret_cast<unsigned long long*>(table.sums);
  table.place = reinterpret_cast<int*>(numbers + 6 * length) + offset;
  table.row_weight = numbers + 7 * length + offset;
  table.row_total = numbers + 8 * length + offset;
  return table;
}

}  // namespace

extern "C" {

// The queries numbered block_ptr[b], ..., block_ptr[b + 1] − 1 in `order`, each at its offset in shared memory.
__global__ void __launch_bounds__(QUERY_THREADS) short_query_gradients(Queries queries) {
  extern __shared__ float4 query_memory[];
  const Team<false> team = {static_cast<int>(threadIdx.x % 32), 32};
  const int last = queries.block_ptr[blockIdx.x + 1];
  for (int number = queries.block_ptr[blockIdx.x] + threadIdx.x / 32; number < last; number += QUERY_THREADS / 32) {
    float* numbers = reinterpret_cast<float*>(query_memory);
    query_gradients(queries, queries.order[number], team, table_at(numbers, BLOCK_DOCUMENTS, queries.offset[number]));
  }
}

// A query a block. numbers : 9 · length
__global__ void __launch_bounds__(LONG_THREADS) long_query_gradients(Queries queries, float* numbers, int length) {
  const Team<true> team = {static_cast<int>(threadIdx.x), LONG_THREADS};
  query_gradients(queries, queries.order[blockIdx.x], team, table_at(numbers, length, queries.offset[blockIdx.x]));
}

}  // extern "C"
