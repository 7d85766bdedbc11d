// Symmetric growth: all leaves of a level are cut in the same way, by the cut with the largest sum of their gains.
//
// The leaves that the cut of a level divides are opened MOST_OPENINGS at a time. Once all of them are, the next level
// is searched: a block takes a column and LEVEL_LEAVES leaves at a time, whose sums it has in shared memory, and a
// thread adds up the gains of a cut in the order of the leaves. Nothing is opened in vain.

#include "partition.cuh"
#include "splits.cuh"
#include "stages.cuh"
#include "finished_tree.cuh"

namespace {

// So many can share a column: each has two codes or more, and their product is at most COLUMN_VALUES, as is their sum.
constexpr int COLUMN_FEATURES = 8;
static_assert(1 << COLUMN_FEATURES == COLUMN_VALUES, "a column of features with two codes each has its values");

// A leaf of the level that is searched.
struct LevelLeaf {
  Bound bound;
  long long* cells;          // of the column that is searched
  const long long* smaller;  // of the other side, if the histograms are still those of both sides; else nullptr
  int part;
  // Of a feature:
  long long missing;  // packed sum of the missing values
  bool may_be_cut;    // by it
};

// In the memory whose size the launch says: LEVEL_BYTES of booster.py.
struct LevelMemory {
  long long* sums;  // [LEVEL_LEAVES][COLUMN_ROOM], of a column
  long long* left;  // [LEVEL_LEAVES][COLUMN_ROOM], up to each code of a feature
  double* total;  // [2][COLUMN_VALUES], gains of the cuts by all features of the column, missing values left and right
};

__device__ __forceinline__ LevelMemory level_memory() {
  LevelMemory memory;
  memory.sums = shared_memory<long long>();
  memory.left = memory.sums + LEVEL_LEAVES * COLUMN_ROOM;
  memory.total = reinterpret_cast<double*>(memory.left + LEVEL_LEAVES * COLUMN_ROOM);
  return memory;
}

__device__ __forceinline__ long long* cells_of_column(const Data& data, const Space& space, int slot, int column) {
  return histogram_of(data, space, slot) + first_cell(data, column);
}

__device__ __forceinline__ LevelLeaf level_leaf(const Data& data, const Space& space, int number, int column) {
  const int own = space.leaves[number].part;
  const Part& part = space.parts[own];
  LevelLeaf leaf = {};
  leaf.part = own;
  leaf.bound = bound_of(*space.growth, part.total, documents_of(part), bounds_of(space, own));
  leaf.cells = cells_of_column(data, space, part.slot, column);
  // The larger side of a leaf that was divided for this level has the histograms of both.
  if (part.above >= 0 && own >= space.growth->first_side) {
    const Part& above = space.parts[part.above];
    const int other = above.left == own ? own + 1 : above.left;
    if (part.slot == above.slot) leaf.smaller = cells_of_column(data, space, space.parts[other].slot, column);
  }
  return leaf;
}

// Read the sums of a column of some leaves to shared memory; those of larger sides take the place of both sides'.
__device__ __forceinline__ void load_column(const LevelLeaf* leaves, int n_leaves, long long* sums) {
  constexpr int TOGETHER = 4;
  const int n_cells = n_leaves * COLUMN_VALUES;
  for (int first = threadIdx.x; first < n_cells; first += TOGETHER * THREADS) {
    long long sum[TOGETHER], smaller[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      const int cell = min(first + i * THREADS, n_cells - 1), place = cell % COLUMN_VALUES * GROUP_COLUMNS;
      const LevelLeaf& leaf = leaves[cell / COLUMN_VALUES];
      sum[i] = leaf.cells[place];
      smaller[i] = leaf.smaller == nullptr ? 0 : leaf.smaller[place];
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      const int cell = first + i * THREADS, value = cell % COLUMN_VALUES;
      if (cell >= n_cells) continue;
      const LevelLeaf& leaf = leaves[cell / COLUMN_VALUES];
      sum[i] -= smaller[i];
      if (leaf.smaller != nullptr) leaf.cells[value * GROUP_COLUMNS] = sum[i];
      sums[cell / COLUMN_VALUES * COLUMN_ROOM + room_of(value)] = sum[i];
    }
  }
}

// The packed sums up to each code of a feature: a warp a leaf. size : of its column
__device__ __forceinline__ void sum_codes(const Data& data, const Space& space, const Cuttable& feature, int size,
                                          LevelLeaf* leaves, int n_leaves, const LevelMemory& memory) {
  for (int number = warp_of(); number < n_leaves; number += WARPS) {
    long long* left = memory.left + number * COLUMN_ROOM;
    const long long missing = for_cuts(feature, size, memory.sums + number * COLUMN_ROOM,
                                       [=](int code, long long running, long long) { left[room_of(code)] = running; });
    if (lane_of() != 0) continue;
    leaves[number].missing = missing;
    leaves[number].may_be_cut = may_interact(data, space, leaves[number].part, feature.number);
  }
}

// Add the gains of some leaves to the totals of a feature's cuts: a thread a cut. total : [2][COLUMN_VALUES]
__device__ __forceinline__ void add_gains(const Cuttable& feature, const LevelLeaf* leaves, int n_leaves,
                                          const long long* sums, double* total) {
  const int n_cuts = feature.n_codes - 1, n_orders = feature.may_miss ? 2 * n_cuts : n_cuts;
  for (int i = threadIdx.x; i < n_orders; i += THREADS) {
    const int side = i / n_cuts, code = i % n_cuts;
    double so_far = total[side * COLUMN_VALUES + code];
#pragma unroll 2
    for (int number = 0; number < n_leaves; ++number) {
      const LevelLeaf& leaf = leaves[number];
      const long long left = sums[number * COLUMN_ROOM + room_of(code)];
      const double gain = cut_gain(leaf.bound, side == 0 ? left : left - leaf.missing, feature.direction);
      if (leaf.may_be_cut && gain > leaf.bound.min_gain) so_far = __dadd_rn(so_far, gain);
    }
    total[side * COLUMN_VALUES + code] = so_far;
  }
}

// Of equal totals the cut that comes first is taken, by its feature and then as in `Candidate`.
struct LevelCut {
  double total;
  long long place;
};

__device__ __forceinline__ void take_better(LevelCut& best, const LevelCut& other) {
  if (other.total > best.total || (other.total == best.total && other.place < best.place)) best = other;
}

// What a search knows of the features of a column.
struct LevelFeatures {
  Cuttable each[COLUMN_FEATURES];
  unsigned are_missing;  // a bit for each, if a leaf has missing values
};

// The best of a column's cuts, whose totals are known; by a warp. Missing values go to -1 if no leaf has any.
__device__ __forceinline__ Found best_of_totals(const LevelFeatures& features, int n_features, const double* total) {
  LevelCut best = {0.0, 0};
  int first = 0;
  for (int i = 0; i < n_features; first += features.each[i++].n_codes) {
    const Cuttable& feature = features.each[i];
    const int n_sides = features.are_missing >> i & 1 ? 2 : 1;
    for (int side = 0; feature.is_allowed && side < n_sides; ++side) {
      for (int code = lane_of(); code < feature.n_codes - 1; code += 32) {
        const long long place = (static_cast<long long>(feature.number) * 2 + side) * COLUMN_VALUES + code;
        take_better(best, {total[side * COLUMN_VALUES + first + code], place});
      }
    }
  }
#pragma unroll 1
  for (int apart = 16; apart > 0; apart /= 2) {
    LevelCut other;
    other.total = __shfl_xor_sync(WHOLE_WARP, best.total, apart);
    other.place = __shfl_xor_sync(WHOLE_WARP, best.place, apart);
    take_better(best, other);
  }
  Found found = {};
  found.gain = best.total;
  found.feature = static_cast<int>(best.place / (2 * COLUMN_VALUES));
  found.code = static_cast<int>(best.place % COLUMN_VALUES);
  found.missing_left = -1;
  for (int i = 0; i < n_features; ++i) {
    const bool is_found = features.each[i].number == found.feature;
    if (is_found && features.are_missing >> i & 1) found.missing_left = best.place / COLUMN_VALUES % 2 == 0;
  }
  return found;
}

// The best cut of all leaves together by the features of each column.
__device__ __forceinline__ void search_level(const Data& data, const Settings& settings, const Space& space) {
  __shared__ LevelLeaf leaves[LEVEL_LEAVES];
  __shared__ LevelFeatures features;
  const LevelMemory memory = level_memory();
  const int n_leaves = space.growth->n_leaves;
  Side level = {};
  level.draw = settings.first_draw + space.growth->level;
  for (int column = blockIdx.x; column < data.n_columns; column += gridDim.x) {
    const int first_feature = data.column_ptr[column], n_features = data.column_ptr[column + 1] - first_feature;
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * COLUMN_VALUES; i += THREADS) memory.total[i] = 0.0;
    for (int i = threadIdx.x; i < n_features; i += THREADS) {
      features.each[i] = cuttable_at(data, settings, level, first_feature + i);
    }
    if (threadIdx.x == 0) features.are_missing = 0;
    for (int first = 0; first < n_leaves; first += LEVEL_LEAVES) {
      const int n_together = min(LEVEL_LEAVES, n_leaves - first);
      for (int i = threadIdx.x; i < n_together; i += THREADS) {
        leaves[i] = level_leaf(data, space, first + i, column);
      }
      __syncthreads();
      load_column(leaves, n_together, memory.sums);
      __syncthreads();
      double* total = memory.total;
      for (int i = 0; i < n_features; total += features.each[i++].n_codes) {
        const Cuttable feature = features.each[i];
        if (!feature.is_allowed) continue;
        sum_codes(data, space, feature, data.sizes[column], leaves, n_together, memory);
        __syncthreads();
        add_gains(feature, leaves, n_together, memory.left, total);
        for (int number = 0; threadIdx.x == 0 && number < n_together; ++number) {
          if (leaves[number].missing != 0) features.are_missing |= 1u << i;
        }
        __syncthreads();
      }
    }
    __syncthreads();
    if (warp_of() == 0) {
      const Found found = best_of_totals(features, n_features, memory.total);
      if (lane_of() == 0) space.found[column] = found;
    }
  }
}

// The best of what was found by column; by a warp.
__device__ __forceinline__ Found best_of_level(const Data& data, const Space& space) {
  Leading best = {};
  for (int i = lane_of(); i < data.n_columns; i += 32) {
    take_leading(best, {space.found[i].gain, space.found[i].feature, i});
  }
  best = leading_of_lanes(best, 32);
  Found found = {};
  if (best.gain > 0.0) found = space.found[best.which];
  return found;
}

// What a cut would do to every leaf: a warp a leaf. Returns by how much the left sides of all leaves are heavier.
__device__ __forceinline__ long long try_cut(const Data& data, const Space& space, const Found& cut) {
  __shared__ unsigned char goes_left[COLUMN_VALUES];
  __shared__ long long heavier;
  Part marked = {};
  marked.feature = cut.feature;
  marked.code = cut.code;
  marked.missing_left = cut.missing_left != 0;
  mark_sides(data, marked, nullptr, goes_left);
  if (threadIdx.x == 0) heavier = 0;
  __syncthreads();
  const int column = data.by_feature[cut.feature * FEATURE_INTEGERS + COLUMN];
  for (int leaf = warp_of(); leaf < space.growth->n_leaves; leaf += WARPS) {
    const int number = space.leaves[leaf].part;
    Part& part = space.parts[number];
    const long long* cells = cells_of_column(data, space, part.slot, column);
    long long left = 0;
#pragma unroll
    for (int value = lane_of(); value < COLUMN_VALUES; value += 32) {
      const long long sum = cells[value * GROUP_COLUMNS];
      left += goes_left[value] ? sum : 0;
    }
    left = sum_of_warp(left);
    if (lane_of() != 0) continue;
    const Bound bound = bound_of(*space.growth, part.total, documents_of(part), bounds_of(space, number));
    const double gain = cut_gain(bound, left, direction_of(data, cut.feature));
    part.gain = may_interact(data, space, number, cut.feature) && gain > bound.min_gain ? gain : 0.0;
    part.left_total = left;
    part.feature = cut.feature;
    part.code = cut.code;
    add_to(&heavier, 2ll * hessian_of(left) - hessian_of(part.total));
  }
  __syncthreads();
  return heavier;
}

// Make leaves that gain by the cut nodes, in the order of their numbers; by a warp.
__device__ __forceinline__ void cut_level(const Settings& settings, const Space& space, bool missing_left) {
  Growth* growth = space.growth;
  const int n_leaves = growth->n_leaves, n_parts = growth->n_parts;
  int n_cut = 0;
  for (int first = 0; first < n_leaves; first += 32) {
    const int leaf = first + lane_of(), number = space.leaves[min(leaf, n_leaves - 1)].part;
    Part& part = space.parts[number];
    const bool is_cut = leaf < n_leaves && part.gain > 0.0;
    const unsigned cut = __ballot_sync(WHOLE_WARP, is_cut);
    if (is_cut) {
      const int before = n_cut + __popc(cut & ((1u << lane_of()) - 1u));
      part.missing_left = missing_left;
      part.node = n_leaves + before - 1;
      part.left = n_parts + 2 * before;
      space.parts[part.left].above = number;
      space.leaves[leaf].part = part.left;
      space.leaves[n_leaves + before].part = part.left + 1;
    }
    n_cut += __popc(cut);
  }
  __syncwarp();
  if (lane_of() != 0) return;
  growth->n_leaves = n_leaves + n_cut;
  growth->n_waiting = n_cut;
  growth->first_side = n_parts;
  growth->is_deepest = ++growth->level == settings.max_depth;
}

// Open the next of the parts that the level's cut divides.
__device__ __forceinline__ void open_next(const Data& data, const Space& space) {
  Growth* growth = space.growth;
  const int n_openings = min(growth->n_waiting, MOST_OPENINGS);
  for (int i = threadIdx.x; i < n_openings; i += THREADS) {
    Opening& opening = space.openings[i];
    opening.sides = 0;
    opening.left = growth->n_parts + 2 * i;
    opening.part = space.parts[opening.left].above;
    opening.slot = 1 + growth->n_opened + i;
    pass_on_rules(data, space, opening);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  growth->n_openings = n_openings;
  growth->n_opened += n_openings;
  growth->n_parts += 2 * n_openings;
  growth->n_waiting -= n_openings;
  ++growth->n_steps;
}

// After the search of a level: cut it, and say which parts are opened first. Before it: open the next ones.
__device__ __forceinline__ void choose_level(const Data& data, const Settings& settings, const Space& space) {
  __shared__ Found best;
  const Growth* growth = space.growth;
  const bool is_searched = growth->n_waiting == 0 && !growth->is_deepest;
  if (warp_of() == 0) {
    Found found = {};
    if (is_searched) found = best_of_level(data, space);
    if (lane_of() == 0) best = found;
  }
  __syncthreads();
  if (best.gain > 0.0) {
    const long long heavier = try_cut(data, space, best);
    if (warp_of() == 0) cut_level(settings, space, best.missing_left < 0 ? heavier >= 0 : best.missing_left != 0);
    __syncthreads();
  }
  if (growth->n_waiting > 0) {
    open_next(data, space);
  } else {
    finish_tree(data, settings, space, load_frontier(settings, space), growth->n_leaves);
  }
}

template <bool WAITS>
__device__ __forceinline__ void search_by_level(const Data& data, const Settings& settings, const Space& space) {
  if (space.growth->n_waiting == 0 && !space.growth->is_deepest) search_level(data, settings, space);
  end_stage<WAITS>(space.growth, [&] { choose_level(data, settings, space); });
}

}  // namespace
