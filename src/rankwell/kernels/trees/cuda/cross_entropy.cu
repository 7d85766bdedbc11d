// Gradients and Hessians of xendcg: see `losses.py`. Each document's numbers are those of the CPU
// (cpu/random_gradients.py), operation by operation, and sums add one document after another, as there. So gradients
// have the same bits.
//
// Queries of which several fit into a block's shared memory are worked on by one warp each, a longer one by a block.
// Every lane adds up a query's numbers by itself: three additions for each document, where all else is some hundred
// instructions shared by 32 lanes.

#include "declarations.h"
#include "elementary_functions.cuh"
#include "random_numbers.cuh"
#include "teams.cuh"

namespace {

constexpr int HALF_WARP = 16;

// A query's numbers by document.
struct Table {
  double* share;  // e^(score − best score), then of the softmax
  double* part;   // what is summed over the query
};

// The sum of each array, known to all threads: half of a warp adds one of them, the other half the other one.
template <bool BLOCK>
__device__ __forceinline__ double2 sums_in_order(const Team<BLOCK>& team, const double* one, const double* other,
                                                 int n_docs) {
  double sum = 0.0;
  if (team.thread < 32) {
    const double* own = team.thread < HALF_WARP ? one : other;
    const double2* pairs = reinterpret_cast<const double2*>(own);
#pragma unroll 4
    for (int i = 0; i < n_docs / 2; ++i) {
      const double2 pair = pairs[i];
      sum = __dadd_rn(__dadd_rn(sum, pair.x), pair.y);
    }
    if (n_docs % 2 != 0) sum = __dadd_rn(sum, own[n_docs - 1]);
  }
  double2 sums = make_double2(__shfl_sync(WHOLE_WARP, sum, 0), __shfl_sync(WHOLE_WARP, sum, HALF_WARP));
  if constexpr (BLOCK) {
    __shared__ double2 of_block;
    if (team.thread == 0) of_block = sums;
    __syncthreads();
    sums = of_block;
  }
  return sums;
}

// The number that each document's l1 and l2 are divided by, before they are summed.
__device__ __forceinline__ double rest_of(double share) {
  const double rest = __dsub_rn(1.0, share);
  return rest > LEAST_REST ? rest : LEAST_REST;
}

__device__ __forceinline__ float added(float gradient, double term) { return narrow(__dadd_rn(widen(gradient), term)); }

template <bool BLOCK>
__device__ __forceinline__ void query_gradients(const Queries& queries, int query, const Team<BLOCK>& team,
                                                const Table& table) {
  const int start = queries.query_ptr[query], n_docs = queries.query_ptr[query + 1] - start;
  if (queries.inverse[query] <= 0.0) {
    for (int i = team.thread; i < n_docs; i += team.n_threads) {
      queries.gradient[start + i] = queries.hessian[start + i] = 0.0f;
    }
    return;
  }
  int order = -2147483647;
  for (int i = team.thread; i < n_docs; i += team.n_threads) order = max(order, order_of(queries.scores[start + i]));
  const double best = widen(of_order(team.largest(order)));
  for (int i = team.thread; i < n_docs; i += team.n_threads) {
    const double unit = random_unit(queries.seed, queries.tree, start + i);
    table.share[i] = exponential(__dsub_rn(widen(queries.scores[start + i]), best));
    table.part[i] = __dsub_rn(__dadd_rn(widen(queries.gain[start + i]), 1.0), unit);
  }
  team.meet();
  const double2 totals = sums_in_order(team, table.share, table.part, n_docs);
  for (int i = team.thread; i < n_docs; i += team.n_threads) {
    const double share = __ddiv_rn(table.share[i], totals.x);
    const double term = __dsub_rn(share, __ddiv_rn(table.part[i], totals.y));
    queries.gradient[start + i] = narrow(term);
    table.share[i] = share;
    table.part[i] = __ddiv_rn(term, rest_of(share));
  }
  team.meet();
  const double spread = sums_in_order(team, table.part, table.part, n_docs).x;
  for (int i = team.thread; i < n_docs; i += team.n_threads) {
    const double share = table.share[i], term = __dmul_rn(share, __dsub_rn(spread, table.part[i]));
    queries.gradient[start + i] = added(queries.gradient[start + i], term);
    table.part[i] = __ddiv_rn(term, rest_of(share));
  }
  team.meet();
  const double following = sums_in_order(team, table.part, table.part, n_docs).x;
  for (int i = team.thread; i < n_docs; i += team.n_threads) {
    const double share = table.share[i], term = __dmul_rn(share, __dsub_rn(following, table.part[i]));
    Real gradient = {added(queries.gradient[start + i], term)};
    Real hessian = {narrow(__dmul_rn(share, __dsub_rn(1.0, share)))};
    if (queries.has_weights) {
      gradient = gradient * Real{queries.weight[start + i]};
      hessian = hessian * Real{queries.weight[start + i]};
    }
    queries.gradient[start + i] = gradient.value;
    queries.hessian[start + i] = hessian.value;
  }
}

}  // namespace

extern "C" {

// The queries numbered block_ptr[b], ..., block_ptr[b + 1] − 1 in `order`, each at its offset in shared memory.
__global__ void __launch_bounds__(QUERY_THREADS) short_query_gradients(Queries queries) {
  extern __shared__ double2 query_memory[];
  const Team<false> team = {static_cast<int>(threadIdx.x % 32), 32};
  const int last = queries.block_ptr[blockIdx.x + 1];
  for (int number = queries.block_ptr[blockIdx.x] + threadIdx.x / 32; number < last; number += QUERY_THREADS / 32) {
    double* share = reinterpret_cast<double*>(query_memory) + queries.offset[number];
    query_gradients(queries, queries.order[number], team, {share, share + BLOCK_DOCUMENTS});
  }
}

// A query a block. numbers : 2 · length
__global__ void __launch_bounds__(LONG_THREADS) long_query_gradients(Queries queries, double* numbers, int length) {
  const Team<true> team = {static_cast<int>(threadIdx.x), LONG_THREADS};
  double* share = numbers + queries.offset[blockIdx.x];
  query_gradients(queries, queries.order[blockIdx.x], team, {share, share + length});
}

}  // extern "C"
