// What is known of all parts while leaves are chosen, and what becomes of them once the tree is complete.

#include "category_splits.cuh"
#include "feature_rules.cuh"
#include "splits.cuh"
#include "stages.cuh"
#include "units.cuh"

namespace {

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

__device__ __forceinline__ float leaf_value(const Data& data, const Settings& settings, const Space& space,
                                            int number) {
  const Growth& growth = *space.growth;
  const Part& part = space.parts[number];
  double l2 = growth.l2;
  if (CATEGORICAL && part.above >= 0 && space.parts[part.above].code < 0) {
    const Part& above = space.parts[part.above];
    const int n_codes = set_codes_of(data, above.feature);
    l2 = category_l2(settings, growth, hessian_of(above.total), documents_of(above), n_codes);
  }
  const double step =
      bounded_step(gradient_of(part.total), hessian_of(part.total), growth.l1, l2, bounds_of(space, number));
  const double scale = power_of_two(growth.hessian_exponent - growth.gradient_exponent);
  return narrow(__dmul_rn(__dmul_rn(step, scale), settings.learning_rate));
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
__device__ __forceinline__ void finish_tree(const Data& data, const Settings& settings, const Space& space,
                                            const Frontier& frontier, int n_leaves) {
  Growth* growth = space.growth;
  for (int i = threadIdx.x; i < n_leaves; i += THREADS) {
    const int number = space.leaves[i].part;
    Part& part = space.parts[number];
    part.leaf = i;
    space.leaves[i].total = part.total;
    space.leaves[i].docs = documents_of(part);
    space.leaves[i].value = leaf_value(data, settings, space, number);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < growth->n_parts; i += THREADS) {
    const Part& part = space.parts[i];
    if (part.node < 0) continue;
    space.nodes[part.node] = node_of(space, part);
    if constexpr (CATEGORICAL) {
      for (int k = 0; k < SET_WORDS; ++k) {
        space.node_sets[part.node * SET_WORDS + k] = part.code < 0 ? set_of(space, i)[k] : 0;
      }
    }
  }
  list_places(space, frontier, n_leaves);
  if (threadIdx.x == 0) {
    growth->n_leaves = n_leaves > 1 ? n_leaves : 0;
    growth->finished = 1;
  }
}

}  // namespace
