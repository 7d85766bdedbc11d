// RankSVM: support pairs, loss and gradient by query, and the sums of a product that is not fused. A team of threads
// (here a block) works on one query at a time, one thread on one document: the paper's P-SWX, with scans in place of
// each thread's loop over its partners. The loss and the gradient are computed in float64, and every sum has
// a fixed order: every run gives the same numbers.

#include "partner_sums.cuh"

namespace {

__device__ Team whole_block() { return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), 0}; }

// The numbers of ones before each position that sum_by_bits needs, for each bit of the levels.
__device__ void build_ranks(const Team& team, const Place* places, int n, int n_levels, int* ranks,
                            const Workspace& work) {
  int* current = reinterpret_cast<int*>(work.current);
  int* next = reinterpret_cast<int*>(work.next);
  for (int place = team.thread; place < n; place += team.size) current[place] = places[place].level;
  team.sync();
  int turn = 0;
  const int n_bits = bits_of(n_levels);
  for (int bit = n_bits - 1; bit >= 0; --bit) {
    int* rank = ranks + static_cast<long long>(n_bits - 1 - bit) * (n + 1);
    int carry[1] = {};
    if (team.thread == 0) rank[0] = 0;
    for (int start = 0; start < n; start += team.size, turn ^= 1) {
      const int position = start + team.thread;
      int x[1] = {position < n ? (current[position] >> bit) & 1 : 0};
      team_scan(team, x, carry, turn);
      if (position < n) rank[position + 1] = x[0];
    }
    team.sync();
    const int n_zeros = n - carry[0];
    for (int position = team.thread; position < n; position += team.size) {
      const int level = current[position], before = rank[position];
      next[(level >> bit) & 1 ? n_zeros + before : position - before] = level;
    }
    team.sync();
    int* swapped = current;
    current = next;
    next = swapped;
  }
}

// The limits of a place, by bisection of the scores in ascending order.
__device__ void find_limits(const double* scores, int n, int place, Place& document) {
  const double score = scores[place];
  int low = 0, high = n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (scores[middle] - score < 1.0)
      low = middle + 1;
    else
      high = middle;
  }
  document.upper = low;
  low = 0;
  high = place;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (score - scores[middle] < 1.0)
      high = middle;
    else
      low = middle + 1;
  }
  document.lower = low;
}

}  // namespace

// The support pairs at one w (equations 9 and 10), the loss of each query and, by row, AtA X w - At e times the
// weights. Queries with one level have no pairs: their residuals are 0. One block works on queries blockIdx.x, +
// gridDim.x, ...
extern "C" __global__ void find_support(
    const double* __restrict__ products,          // n_docs: X w
    const int* __restrict__ order,                // n_docs: the row at each place, from the query's first
    const int* __restrict__ levels,               // n_docs
    const long long* __restrict__ query_ptr,      // n_queries + 1
    const int* __restrict__ n_levels,             // n_queries
    const double* __restrict__ query_weights,     // n_queries
    const double* __restrict__ document_weights,  // n_docs, or null if all are 1
    const long long* __restrict__ scratch_ptr,    // n_queries: where a query's workspace is in scratch, or -1: shared
    const long long* __restrict__ rank_ptr,       // n_queries: where its ranks are (METHOD 1)
    int n_queries,
    Place* places,      // n_docs, out
    double* degree,     // n_docs, out, by place: the weight of the partners
    int* ranks,         // out (METHOD 1)
    double* residuals,  // n_docs, out
    double* losses,     // n_queries, out
    double* scratch) {
  extern __shared__ double shared[];
  const Team team = whole_block();
  for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
    const long long start = query_ptr[query];
    const int n = static_cast<int>(query_ptr[query + 1] - start);
    if (n_levels[query] < 2) {
      for (int row = team.thread; row < n; row += team.size) residuals[start + row] = 0.0;
      if (team.thread == 0) losses[query] = 0.0;
      continue;
    }
    const Workspace work = workspace_at(scratch_ptr[query] < 0 ? shared : scratch + scratch_ptr[query], n);
    double* scores = work.products;
    const double middle = products[start + order[start + n / 2]];
    for (int place = team.thread; place < n; place += team.size)
      scores[place] = products[start + order[start + place]] - middle;
    team.sync();
    for (int place = team.thread; place < n; place += team.size) {
      Place document{order[start + place], levels[start + order[start + place]], 0, 0};
      find_limits(scores, n, place, document);
      places[start + place] = document;
    }
    int* own_ranks = METHOD == 1 ? ranks + rank_ptr[query] : nullptr;
    if (METHOD == 1) build_ranks(team, places + start, n, n_levels[query], own_ranks, work);
    Pairs pairs{places + start, degree + start, own_ranks, n, n_levels[query], {}};
    pairs.own.load(team, pairs.places, pairs.degrees, n);
    const double query_weight = query_weights[query];
    const auto weight = [&](int row) { return document_weights ? document_weights[start + row] : 1.0; };
    double loss = 0.0;
    sum_partners(
        team, pairs, work, [&](int, const Place& own) { return weight(own.row); },
        [&](int place, const Place& own, double, double above, double below) {  // beta+ and beta-
          degree[start + place] = above + below;
          residuals[start + own.row] = above - below;
          loss += weight(own.row) * (above - 2.0 * scores[place] * (below - above));
        });
    team.sync();
    sum_partners(
        team, pairs, work, [&](int place, const Place& own) { return weight(own.row) * scores[place]; },
        [&](int place, const Place& own, double, double above, double below) {  // gamma+ and gamma-
          const double spread = degree[start + place] * scores[place] - (above + below);
          loss += weight(own.row) * scores[place] * spread;
          double& residual = residuals[start + own.row];
          residual = query_weight * weight(own.row) * (spread + residual);
        });
    double all[1] = {loss}, total[1] = {0.0};
    team.sync();
    team_scan(team, all, total, 0);
    if (team.thread == 0) losses[query] = query_weight * total[0];
    team.sync();
  }
}

// Products X v, by row, become AtA X v times the weights, in place: the sums of a product that is not fused.
extern "C" __global__ void subtract_partners(double* products, const Place* __restrict__ places,
                                             const double* __restrict__ degree, const int* __restrict__ ranks,
                                             const long long* __restrict__ query_ptr, const int* __restrict__ n_levels,
                                             const double* __restrict__ query_weights,
                                             const double* __restrict__ document_weights,
                                             const long long* __restrict__ scratch_ptr,
                                             const long long* __restrict__ rank_ptr, int n_queries, double* scratch) {
  extern __shared__ double shared[];
  const Team team = whole_block();
  for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
    const long long start = query_ptr[query];
    const int n = static_cast<int>(query_ptr[query + 1] - start);
    if (n_levels[query] < 2) {
      for (int row = team.thread; row < n; row += team.size) products[start + row] = 0.0;
      continue;
    }
    const Workspace work = workspace_at(scratch_ptr[query] < 0 ? shared : scratch + scratch_ptr[query], n);
    const int* own_ranks = METHOD == 1 ? ranks + rank_ptr[query] : nullptr;
    Pairs pairs{places + start, degree + start, own_ranks, n, n_levels[query], {}};
    pairs.own.load(team, pairs.places, pairs.degrees, n);
    const auto weight = [&](int row) { return document_weights ? document_weights[start + row] : 1.0; };
    sum_partners(
        team, pairs, work, [&](int, const Place& own) { return products[start + own.row] * weight(own.row); },
        [&](int, const Place& own, double degree, double above, double below) {
          double& product = products[start + own.row];
          product = query_weights[query] * weight(own.row) * (degree * product - (above + below));
        });
    team.sync();
  }
}
