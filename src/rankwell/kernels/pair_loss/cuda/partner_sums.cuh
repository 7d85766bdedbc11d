// Sums over the partners of every document of a query, in float64 and in a fixed order.

#include "pairs.cuh"

namespace {

// Exclusive scan of n numbers in place by one warp, and their total after them. A lane takes an odd number of
// neighbours, so that lanes use different banks of shared memory.
__device__ void warp_scan(double* numbers, int n) {
  constexpr int per_lane = 5;
  const int lane = threadIdx.x % kWarp;
  double carry = 0.0;
  for (int start = 0; start < n; start += per_lane * kWarp) {
    const int first = start + per_lane * lane;
    double x[per_lane], own_total = 0.0;
#pragma unroll
    for (int k = 0; k < per_lane; ++k) x[k] = first + k < n ? numbers[first + k] : 0.0;
#pragma unroll
    for (int k = 0; k < per_lane; ++k) own_total += x[k];
    double through = own_total;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
      const double other = __shfl_up_sync(kAllLanes, through, step);
      if (lane >= step) through += other;
    }
    double before = carry + (through - own_total);
#pragma unroll
    for (int k = 0; k < per_lane; ++k) {
      if (first + k < n) numbers[first + k] = before;
      before += x[k];
    }
    carry += __shfl_sync(kAllLanes, through, kWarp - 1);
  }
  if (lane == 0) numbers[n] = carry;
}

// finish(place, document, degree, above, below) for each document: the sums of value(place, document) over its
// partners. Level by level: sums[j][p] holds the total over places before p of the levels first + j and better. A warp
// scans a level.
template <typename Value, typename Finish>
__device__ void sum_by_levels(const Team& team, const Pairs& pairs, const Workspace& work, Value value, Finish finish) {
  const int n = pairs.n, width = n + 1;
  for (int first = 0; first < pairs.n_levels; first += LEVELS_PER_PASS) {
    const bool is_first = first == 0, is_last = first + LEVELS_PER_PASS >= pairs.n_levels;
    pairs.for_own_places(team, [&](int place, const Place& own, double) {
      const double own_value = value(place, own);
#pragma unroll
      for (int j = 0; j < LEVELS_PER_PASS; ++j) work.sums[j * width + place] = own.level >= first + j ? own_value : 0.0;
    });
    team.sync();
    for (int j = team.thread / kWarp; j < min(LEVELS_PER_PASS, pairs.n_levels - first); j += team.size / kWarp)
      warp_scan(work.sums + j * width, n);
    team.sync();
    pairs.for_own_places(team, [&](int place, const Place& own, double degree) {
      const int better = own.level + 1 - first, same = own.level - first;
      double above = is_first ? 0.0 : work.above[place];
      // The worse ones: all, less those of the same level or better.
      double below = is_first ? work.sums[n] - work.sums[own.lower] : work.below[place];
      if (better >= 0 && better < min(LEVELS_PER_PASS, pairs.n_levels - first))
        above = work.sums[better * width + own.upper];
      if (same >= 0 && same < LEVELS_PER_PASS)
        below -= work.sums[same * width + n] - work.sums[same * width + own.lower];
      if (is_last) {
        finish(place, own, degree, above, below);
      } else {
        work.above[place] = above;
        work.below[place] = below;
      }
    });
    if (!is_last) team.sync();
  }
}

// The same by a wavelet tree: bit by bit of the level, from the highest, documents are divided stably into those with 0
// and those with 1. A document follows the node of its own level, positions [node, end) of the current order, of which
// the first `inside` have places below its limit; the documents that leave its node upwards (downwards) are better
// (worse) than it.
template <typename Value, typename Finish>
__device__ void sum_by_bits(const Team& team, const Pairs& pairs, Workspace work, Value value, Finish finish) {
  const int n = pairs.n, width = n + 1;
  pairs.for_own_places(team, [&](int place, const Place& own, double) {
    work.current[place] = value(place, own);
    work.above[place] = work.below[place] = 0.0;
    work.follower[place] = make_int4(0, n, own.upper, own.lower);
  });
  int turn = 0;
  const int n_bits = bits_of(pairs.n_levels);
  for (int bit = n_bits - 1; bit >= 0; --bit) {
    const int* rank = pairs.ranks + static_cast<long long>(n_bits - 1 - bit) * width;
    const int n_zeros = n - rank[n];
    double carry[2] = {};
    if (team.thread == 0) work.ones[0] = work.zeros[0] = 0.0;
    for (int start = 0; start < n; start += team.size, turn ^= 1) {
      const int position = start + team.thread;
      const double own_value = position < n ? work.current[position] : 0.0;
      const int before = position < n ? rank[position] : 0;
      const bool is_one = position < n && rank[position + 1] > before;
      double x[2] = {is_one ? own_value : 0.0, is_one ? 0.0 : own_value};
      team_scan(team, x, carry, turn);
      if (position < n) {
        work.ones[position + 1] = x[0];
        work.zeros[position + 1] = x[1];
        work.next[is_one ? n_zeros + before : position - before] = own_value;
      }
    }
    team.sync();
    pairs.for_own_places(team, [&](int place, const Place& own, double degree) {
      const int4 at = work.follower[place];
      const int node = at.x, end = at.y;
      const int before = rank[node], before_end = rank[end];
      const int upper = rank[node + at.z] - before, lower = rank[node + at.w] - before;
      if ((own.level >> bit) & 1) {
        work.below[place] += work.zeros[end] - work.zeros[node + at.w];
        work.follower[place] = make_int4(n_zeros + before, n_zeros + before_end, upper, lower);
      } else {
        work.above[place] += work.ones[node + at.z] - work.ones[node];
        work.follower[place] = make_int4(node - before, end - before_end, at.z - upper, at.w - lower);
      }
      if (bit == 0) finish(place, own, degree, work.above[place], work.below[place]);
    });
    team.sync();
    double* swapped = work.current;
    work.current = work.next;
    work.next = swapped;
  }
}

// A thread provides the values of its own places, and finishes them. There must be a barrier of the team between one
// call and the next.
template <typename Value, typename Finish>
__device__ void sum_partners(const Team& team, const Pairs& pairs, const Workspace& work, Value value, Finish finish) {
  if (METHOD == 0)
    sum_by_levels(team, pairs, work, value, finish);
  else
    sum_by_bits(team, pairs, work, value, finish);
}

}  // namespace
