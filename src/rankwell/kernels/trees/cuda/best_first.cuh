// Best-first growth, and which parts are opened before it is certain that they are needed.
//
// The tree is that of cutting the leaf with the largest gain, again and again. To open a part, which is to find its
// sides and their best cuts, takes several stages of all blocks, so parts are opened many at a time: the leaf that is
// cut next, and those that probably will be. Then leaves are cut in the right order for as long as they are open. Parts
// that were opened in vain cost time and change nothing.
//
// The *turn* of a part is the least of its own gain and of the gains of the parts above it, up to the leaf that they
// are in. Parts are cut in the descending order of their turns, whatever is found below them: if n cuts are left, a
// part with n or more greater turns is never cut, and all others may be. So if all parts with a good turn are opened as
// soon as they are known, the number of steps is the depth of the tree. Equal turns are those of parts below the same
// one, and ordered by the least gain below that.

#include "partition.cuh"
#include "splits.cuh"
#include "finished_tree.cuh"

namespace {

// What the sides of the openings are, and their best cuts: a warp for each.
__device__ __forceinline__ void keep_sides(const Data& data, const Space& space) {
  const int n_openings = space.growth->n_openings;
  for (int task = warp_of(); task < 2 * n_openings; task += WARPS) {
    const int side = task % 2;
    const Opening opening = space.openings[task / 2];
    const bool is_root = opening.part < 0;
    if (is_root && side == 1) continue;
    const int n_words = words_of(data);
    const Found* found = space.found + static_cast<size_t>(task) * n_words;
    Leading best = {};
#pragma unroll 4
    for (int i = lane_of(); i < n_words; i += 32) take_leading(best, {found[i].gain, found[i].feature, i});
    best = leading_of_lanes(best, 32);
    if (lane_of() != 0) continue;
    if (!is_root) make_side(data, space, opening, side);
    Part& own = space.parts[opening.left + side];
    Found cut = {};
    if (best.gain > 0.0) cut = found[best.which];
    own.gain = cut.gain;
    own.left_total = cut.left_total;
    own.feature = cut.feature;
    own.code = cut.code;
    own.missing_left = cut.missing_left;
    if constexpr (CATEGORICAL) {
      const unsigned* set = space.found_sets + (static_cast<size_t>(task) * n_words + best.which) * SET_WORDS;
      for (int i = 0; i < SET_WORDS; ++i) set_of(space, opening.left + side)[i] = set[i];
    }
  }
}

// Cut the leaf with the largest gain for as long as its part is open; by one warp. The left side keeps the leaf's
// number. Returns the part to be opened, -1 if the tree is complete.
__device__ __forceinline__ int cut_leaves(const Settings& settings, const Space& space, const Frontier& frontier,
                                          int& n_leaves) {
#pragma unroll 1
  for (; n_leaves < settings.n_leaves; ++n_leaves) {
    // The order of gains that are not negative is that of their bits.
    long long gain = 0;
    int own = settings.n_leaves;
#pragma unroll 4
    for (int i = lane_of(); i < n_leaves; i += 32) {
      const long long other = __double_as_longlong(frontier.leaf_gain[i]);
      if (other > gain) {
        gain = other;
        own = i;
      }
    }
    const unsigned upper = static_cast<unsigned>(gain >> 32), lower = static_cast<unsigned>(gain);
    const unsigned most = __reduce_max_sync(WHOLE_WARP, upper);
    const unsigned then = __reduce_max_sync(WHOLE_WARP, upper == most ? lower : 0);
    const bool is_best = upper == most && lower == then;
    const unsigned leaf = __reduce_min_sync(WHOLE_WARP, static_cast<unsigned>(is_best ? own : settings.n_leaves));
    if (leaf == settings.n_leaves) return -1;
    const int part = frontier.leaf_part[leaf], left = frontier.left[part];
    if (left < 0) return part;
    __syncwarp();
    if (lane_of() == 0) {
      space.parts[part].node = n_leaves - 1;
      frontier.gain[part] = -1.0;
      frontier.leaf_part[leaf] = left;
      frontier.leaf_part[n_leaves] = left + 1;
      frontier.leaf_gain[leaf] = frontier.gain[left];
      frontier.leaf_gain[n_leaves] = frontier.gain[left + 1];
    }
    __syncwarp();
  }
  return -1;
}

// The upper half of a positive number's bits, which has its order.
__device__ __forceinline__ unsigned upper_bits(double x) {
  return static_cast<unsigned>(__double_as_longlong(x) >> 32);
}

// A part's turn as a whole number: 20 bits of it, and 12 of how much greater the least gain below is.
__device__ __forceinline__ unsigned turn_of(const Frontier& frontier, int part) {
  double least = frontier.gain[part], below = 0.0;
  if (!(least > 0.0)) return 0;
  for (int above = frontier.above[part]; above >= 0 && frontier.gain[above] >= 0.0; above = frontier.above[above]) {
    if (frontier.gain[above] > least) continue;
    below = least;
    least = frontier.gain[above];
  }
  const unsigned turn = upper_bits(least), more = below > 0.0 ? (upper_bits(below) - turn) >> 12 : 4095u;
  return (turn >> 11) << 12 | min(more, 4095u);
}

// Choose the parts to be opened next: `needed`, and those whose turns are among the first of what may still be cut.
__device__ __forceinline__ void choose_openings(const Data& data, const Settings& settings, const Space& space,
                                                const Frontier& frontier, int needed, int n_leaves) {
  __shared__ int n_chosen, n_turns;
  __shared__ unsigned least;
  Growth* growth = space.growth;
  const int n_parts = growth->n_parts, n_opened = growth->n_opened;
  const int n_cuts = settings.n_leaves - n_leaves;
  if (threadIdx.x == 0) {
    n_chosen = least = 1;
    n_turns = 0;
  }
  for (int i = threadIdx.x; i < n_parts; i += THREADS) frontier.turn[i] = turn_of(frontier, i);
  __syncthreads();
  // Gains are not needed any more.
  unsigned* turns = reinterpret_cast<unsigned*>(frontier.gain);
  for (int i = threadIdx.x; i < n_parts; i += THREADS) {
    if (frontier.turn[i] > 0) turns[atomicAdd(&n_turns, 1)] = frontier.turn[i];
  }
  __syncthreads();
  // As many parts as cuts are left can always be opened. What is drawn for a leaf depends on the number of the cut that
  // made it, so that it must be certain.
  const int spare = settings.most_opened - n_opened - n_cuts;
  const int room = settings.node_features < 1.0 ? 1 : min(MOST_OPENINGS, spare + 1);
  const int limit = max(1, static_cast<int>(ceil(OPENED_SHARE * n_cuts)));
  // The greatest turn that as many have or exceed; 1 if there are no more.
  for (int i = threadIdx.x; n_turns > limit && i < n_turns; i += THREADS) {
    int n_reaching = 0;
#pragma unroll 4
    for (int j = 0; j < n_turns; ++j) n_reaching += turns[j] >= turns[i];
    if (n_reaching >= limit) atomicMax(&least, turns[i]);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n_parts; i += THREADS) {
    if (frontier.turn[i] < least || frontier.left[i] >= 0 || i == needed) continue;
    const int place = atomicAdd(&n_chosen, 1);
    if (place < room) space.openings[place].part = i;
  }
  __syncthreads();
  const int n_openings = min(n_chosen, room);
  for (int i = threadIdx.x; i < n_openings; i += THREADS) {
    Opening& opening = space.openings[i];
    if (i == 0) opening.part = needed;
    opening.sides = 0;
    opening.left = n_parts + 2 * i;
    opening.slot = 1 + n_opened + i;
    space.parts[opening.part].left = opening.left;
    pass_on_rules(data, space, opening);
  }
  if (threadIdx.x == 0) {
    growth->n_openings = n_openings;
    growth->n_opened = n_opened + n_openings;
    growth->n_parts = n_parts + 2 * n_openings;
  }
}

// After the search: cut leaves, and say which parts are opened next.
__device__ __forceinline__ void choose(const Data& data, const Settings& settings, const Space& space) {
  __shared__ int n_leaves, needed;
  Growth* growth = space.growth;
  keep_sides(data, space);
  __syncthreads();
  const Frontier frontier = load_frontier(settings, space);
  if (warp_of() == 0) {
    int so_far = growth->n_leaves;
    const int part = cut_leaves(settings, space, frontier, so_far);
    if (lane_of() == 0) {
      n_leaves = so_far;
      needed = part;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n_leaves; i += THREADS) space.leaves[i].part = frontier.leaf_part[i];
  if (threadIdx.x == 0) {
    growth->n_leaves = n_leaves;
    ++growth->n_steps;
  }
  __syncthreads();
  if (needed < 0) {
    finish_tree(data, settings, space, frontier, n_leaves);
  } else {
    choose_openings(data, settings, space, frontier, needed, n_leaves);
  }
}

template <bool WAITS>
__device__ __forceinline__ void search_by_leaf(const Data& data, const Settings& settings, const Space& space) {
  search_columns(data, settings, space);
  end_stage<WAITS>(space.growth, [&] { choose(data, settings, space); });
}

}  // namespace
