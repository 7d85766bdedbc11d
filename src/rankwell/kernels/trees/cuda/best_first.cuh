// Best-first growth, and which parts are opened before it is certain that they are needed.
//
// The tree is that of cutting the leaf with the largest gain, again and again. To open a part, which is to find its
// sides and their best cuts, takes several stages of all blocks, so parts are opened many at a time: the leaf that is
// cut next, and those that probably will be. Then leaves are cut in the right order for as long as they are open. Parts
// that were opened in vain cost time and change nothing.

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
    const Found* found = space.found + static_cast<size_t>(task) * data.n_columns;
    double gain = 0.0;
    int feature = 0, column = 0;
    const auto take_better_column = [&](double other_gain, int other_feature, int other) {
      if (other_gain > gain || (other_gain == gain && gain > 0.0 && other_feature < feature)) {
        gain = other_gain;
        feature = other_feature;
        column = other;
      }
    };
#pragma unroll 4
    for (int i = lane_of(); i < data.n_columns; i += 32) take_better_column(found[i].gain, found[i].feature, i);
    for (int apart = 16; apart > 0; apart /= 2) {
      const double other_gain = __shfl_xor_sync(WHOLE_WARP, gain, apart);
      const int other_feature = __shfl_xor_sync(WHOLE_WARP, feature, apart);
      const int other = __shfl_xor_sync(WHOLE_WARP, column, apart);
      take_better_column(other_gain, other_feature, other);
    }
    if (lane_of() != 0) continue;
    Part& own = space.parts[opening.left + side];
    if (!is_root) {
      const Part& part = space.parts[opening.part];
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
    Found best = {};
    if (gain > 0.0) best = found[column];
    own.gain = best.gain;
    own.left_total = best.left_total;
    own.feature = best.feature;
    own.code = best.code;
    own.missing_left = best.missing_left;
  }
}

// What the choice needs of parts and leaves, in shared memory.
struct Frontier {
  double* gain;       // (n_parts,), -1 once the part is a node
  double* leaf_gain;  // (n_leaves,)
  int* left;          // (n_parts,)
  int* leaf_part;     // (n_leaves,)
};

__device__ __forceinline__ Frontier load_frontier(const Settings& settings, const Space& space) {
  const int most_parts = 1 + 2 * settings.most_opened;
  Frontier frontier;
  frontier.gain = shared_memory<double>();
  frontier.leaf_gain = frontier.gain + most_parts;
  frontier.left = reinterpret_cast<int*>(frontier.leaf_gain + settings.n_leaves);
  frontier.leaf_part = frontier.left + most_parts;
  for (int i = threadIdx.x; i < space.growth->n_parts; i += THREADS) {
    const Part& part = space.parts[i];
    frontier.gain[i] = part.node < 0 ? part.gain : -1.0;
    frontier.left[i] = part.left;
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
  for (; n_leaves < settings.n_leaves; ++n_leaves) {
    double gain = 0.0;
    int leaf = settings.n_leaves;
    for (int i = lane_of(); i < n_leaves; i += 32) {
      if (frontier.leaf_gain[i] > gain) {
        gain = frontier.leaf_gain[i];
        leaf = i;
      }
    }
    for (int apart = 16; apart > 0; apart /= 2) {
      const double other_gain = __shfl_xor_sync(WHOLE_WARP, gain, apart);
      const int other = __shfl_xor_sync(WHOLE_WARP, leaf, apart);
      if (other_gain > gain || (other_gain == gain && other < leaf)) {
        gain = other_gain;
        leaf = other;
      }
    }
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

// Choose the parts to be opened next: `needed`, and those whose gains are among the largest of what may still be cut.
__device__ __forceinline__ void choose_openings(const Settings& settings, const Space& space, const Frontier& frontier,
                                                int needed, int n_leaves) {
  __shared__ int n_chosen;
  Growth* growth = space.growth;
  const int n_parts = growth->n_parts, n_opened = growth->n_opened;
  const int n_cuts = settings.n_leaves - n_leaves;
  if (threadIdx.x == 0) n_chosen = 1;
  __syncthreads();
  // As many parts as cuts are left can always be opened.
  const int room = min(MOST_OPENINGS, settings.most_opened - n_opened - n_cuts + 1);
  const int limit = max(1, static_cast<int>(ceil(OPENED_SHARE * n_cuts)));
  for (int i = threadIdx.x; i < n_parts; i += THREADS) {
    const double gain = frontier.gain[i];
    if (!(gain > 0.0) || frontier.left[i] >= 0 || i == needed) continue;
    int rank = 0;
    for (int other = 0; other < n_parts; ++other) {
      rank += frontier.gain[other] > gain || (frontier.gain[other] == gain && other < i);
    }
    if (rank >= limit) continue;
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

// The nodes, the leaves and their values, and where the documents are that these are added to. starts : (n_parts,)
__device__ __forceinline__ void finish_tree(const Settings& settings, const Space& space, int n_leaves, int* starts) {
  Growth* growth = space.growth;
  for (int i = threadIdx.x; i < n_leaves; i += THREADS) {
    Part& part = space.parts[space.leaves[i].part];
    part.leaf = i;
    space.leaves[i].total = part.total;
    space.leaves[i].docs = documents_of(part);
    space.leaves[i].value = leaf_value(settings, *growth, part.total);
  }
  const int n_parts = growth->n_parts;
  for (int i = threadIdx.x; i < n_parts; i += THREADS) {
    const Part& part = space.parts[i];
    starts[i] = part.left < 0 ? part.start : -1;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n_parts; i += THREADS) {
    const Part& part = space.parts[i];
    if (part.node >= 0) space.nodes[part.node] = node_of(space, part);
    if (starts[i] < 0) continue;
    int rank = 0;
    for (int other = 0; other < n_parts; ++other) rank += starts[other] >= 0 && starts[other] < starts[i];
    int above = i;
    while (space.parts[above].leaf < 0) above = space.parts[above].above;
    Places own;
    own.start = part.start;
    own.end = part.end;
    own.buffer = part.buffer;
    own.value = space.leaves[space.parts[above].leaf].value;
    space.places[rank] = own;
    atomicAdd(&growth->n_closed, 1);
  }
  if (threadIdx.x == 0) {
    growth->n_leaves = n_leaves > 1 ? n_leaves : 0;
    growth->finished = 1;
  }
}

// After the search: cut leaves, and say which parts are opened next.
__device__ __noinline__ void choose(const Data& data, const Settings& settings, const Space& space) {
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
    finish_tree(settings, space, n_leaves, frontier.left);
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
