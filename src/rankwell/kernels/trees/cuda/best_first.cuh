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

#include "splits.cuh"

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
    Part& own = space.parts[opening.left + side];
    if (!is_root) {
      const Part part = space.parts[opening.part];
      const int n_left = left_documents(data, opening);
      const bool is_smaller = is_left_smaller(opening, part, n_left) == (side == 0);
      own.total = side == 0 ? part.left_total : part.total - part.left_total;
      own.start = side == 0 ? part.start : part.start + n_left;
      own.end = side == 0 ? part.start + n_left : part.end;
      own.buffer = 1 - part.buffer;
      own.slot = is_smaller ? opening.slot : part.slot;
      own.depth = part.depth + 1;
      own.above = opening.part;
      own.left = own.leaf = own.node = -1;
    }
    Found cut = {};
    if (best.gain > 0.0) cut = found[best.which];
    own.gain = cut.gain;
    own.left_total = cut.left_total;
    own.feature = cut.feature;
    own.code = cut.code;
    own.missing_left = cut.missing_left;
  }
}

// What the choice needs of parts and leaves, in shared memory: `GrowthSizes.frontier_bytes`.
struct Frontier {
  double* gain;       // (n_parts,), -1 once the part is a node
  double* leaf_gain;  // (n_leaves,)
  unsigned* turn;     // (n_parts,), 0 if the part has no cut or is a node
  int* leaf_part;     // (n_leaves,)
  short* left;        // (n_parts,)
  short* above;       // (n_parts,)
};

__device__ __forceinline__ Frontier load_frontier(const Settings& settings, const Space& space) {
  const int most_parts = 1 + 2 * settings.most_opened;
  Frontier frontier;
  frontier.gain = shared_memory<double>();
  frontier.leaf_gain = frontier.gain + most_parts;
  frontier.turn = reinterpret_cast<unsigned*>(frontier.leaf_gain + settings.n_leaves);
  frontier.leaf_part = reinterpret_cast<int*>(frontier.turn + most_parts);
  frontier.left = reinterpret_cast<short*>(frontier.leaf_part + settings.n_leaves);
  frontier.above = frontier.left + most_parts;
  for (int i = threadIdx.x; i < space.growth->n_parts; i += THREADS) {
    const Part& part = space.parts[i];
    frontier.gain[i] = part.node < 0 ? part.gain : -1.0;
    frontier.left[i] = static_cast<short>(part.left);
    frontier.above[i] = static_cast<short>(part.above);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < space.growth->n_leaves; i += THREADS) {
    frontier.leaf_part[i] = space.leaves[i].part;
    frontier.leaf_gain[i] = frontier.gain[frontier.leaf_part[i]];
  }
  __syncthreads();
  return frontier;
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
__device__ __forceinline__ void choose_openings(const Settings& settings, const Space& space, const Frontier& frontier,
                                                int needed, int n_leaves) {
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
  }
  if (threadIdx.x == 0) {
    growth->n_openings = n_openings;
    growth->n_opened = n_opened + n_openings;
    growth->n_parts = n_parts + 2 * n_openings;
  }
}

__device__ __forceinline__ float leaf_value(const Settings& settings, const Growth& growth, long long total) {
  const double gradient = gradient_of(total), hessian = hessian_of(total);
  const double size = __dsub_rn(fabs(gradient), growth.l1), below = __dadd_rn(hessian, growth.l2);
  if (size <= 0.0 || below <= 0.0) return 0.0f;
  const double scale = power_of_two(growth.hessian_exponent - growth.gradient_exponent);
  const double value = __dmul_rn(__dmul_rn(__ddiv_rn(size, below), scale), settings.learning_rate);
  return narrow(gradient > 0.0 ? -value : value);
}

// The number of a part in the tree: a node's, or -1 - that of a leaf.
__device__ __forceinline__ int number_of(const Part& part) { return part.node >= 0 ? part.node : -1 - part.leaf; }

__device__ __forceinline__ Node node_of(const Space& space, const Part& part) {
  Node node;
  node.gain = part.gain;
  node.total = part.total;
  node.feature = part.feature;
  node.code = part.code;
  node.missing_left = part.missing_left;
  node.left = number_of(space.parts[part.left]);
  node.right = number_of(space.parts[part.left + 1]);
  node.docs = documents_of(part);
  return node;
}

// Where the documents are that values are added to: the places of all parts that are not opened, one part after
// another.
__device__ __forceinline__ void list_places(const Space& space, const Frontier& frontier, int n_leaves) {
  // Parts so far in the upper half, and their places in the lower one.
  __shared__ unsigned long long so_far;
  Growth* growth = space.growth;
  const int n_parts = growth->n_parts;
  short* leaf_of = reinterpret_cast<short*>(frontier.turn);
  if (threadIdx.x == 0) so_far = 0;
  for (int i = threadIdx.x; i < n_parts; i += THREADS) leaf_of[i] = -1;
  __syncthreads();
  for (int i = threadIdx.x; i < n_leaves; i += THREADS) leaf_of[frontier.leaf_part[i]] = static_cast<short>(i);
  __syncthreads();
  for (int first = 0; first < n_parts; first += THREADS) {
    const int i = min(first + static_cast<int>(threadIdx.x), n_parts - 1);
    const Part& part = space.parts[i];
    const bool is_closed = first + threadIdx.x < n_parts && part.left < 0;
    const int length = is_closed ? part.end - part.start : 0;
    const unsigned long long own = is_closed ? (1ull << 32) + length : 0, up_to = running_sum(own);
    unsigned long long before = 0;
    if (lane_of() == 31) before = atomicAdd(&so_far, up_to);
    before = __shfl_sync(WHOLE_WARP, before, 31) + up_to - own;
    if (!is_closed) continue;
    int above = i;
    while (leaf_of[above] < 0) above = frontier.above[above];
    Places places;
    places.start = part.start;
    places.before = static_cast<int>(before & LOWER_HALF);
    places.buffer = part.buffer;
    places.value = space.leaves[leaf_of[above]].value;
    space.places[before >> 32] = places;
  }
  __syncthreads();
  if (threadIdx.x == 0) growth->n_closed = static_cast<int>(so_far >> 32);
}

// The nodes, the leaves and their values.
__device__ __forceinline__ void finish_tree(const Settings& settings, const Space& space, const Frontier& frontier,
                                            int n_leaves) {
  Growth* growth = space.growth;
  for (int i = threadIdx.x; i < n_leaves; i += THREADS) {
    Part& part = space.parts[space.leaves[i].part];
    part.leaf = i;
    space.leaves[i].total = part.total;
    space.leaves[i].docs = documents_of(part);
    space.leaves[i].value = leaf_value(settings, *growth, part.total);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < growth->n_parts; i += THREADS) {
    const Part& part = space.parts[i];
    if (part.node >= 0) space.nodes[part.node] = node_of(space, part);
  }
  list_places(space, frontier, n_leaves);
  if (threadIdx.x == 0) {
    growth->n_leaves = n_leaves > 1 ? n_leaves : 0;
    growth->finished = 1;
  }
}

// After the search: cut leaves, and say which parts are opened next.
__device__ __forceinline__ void choose(const Data& data, const Settings& settings, const Space& space) {
  __shared__ int n_leaves, needed;
  Growth* growth = space.growth;
  keep_sides(data, space);
  if (threadIdx.x == 0 && growth->n_leaves == 0) {
    space.leaves[0].part = 0;
    growth->n_leaves = 1;
  }
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
    finish_tree(settings, space, frontier, n_leaves);
  } else {
    choose_openings(settings, space, frontier, needed, n_leaves);
  }
}

template <bool WAITS>
__device__ __forceinline__ void search(const Data& data, const Settings& settings, const Space& space) {
  search_columns(data, settings, space);
  end_stage<WAITS>(space.growth, [&] { choose(data, settings, space); });
}

}  // namespace
