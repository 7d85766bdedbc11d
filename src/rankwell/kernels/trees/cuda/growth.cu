// Boosted trees: a whole tree on the device. Vocabulary and precision are those of `contract.py` and `rules.py`.
//
// A *part* is documents that are a node or leaf of the tree, or may become one. To *open* one is to divide its
// documents by its best cut, to count the histograms of the smaller side (those of the other side are the difference),
// and to search both sides' best cuts. Sums are of whole numbers, so their order does not matter, and decisions are
// made by float64 operations in the order of the CPU's: the tree has the same bits.
//
// Macros: THREADS    of a block; there is one block per multiprocessor
//         GROUPS     groups of 32 columns whose histograms a block holds, 1 or 2: 64 KiB of shared memory each
//         SYMMETRIC  1 if trees are grown level by level, 0 if leaf by leaf
//         BOUNDED    1 if there are features that rise or fall
//         INTERACTION_WORDS  of 64 groups of features that may interact, a bit each; 0 if there are none
//         CATEGORICAL  1 if there are features whose values are categories

#include "units.cuh"
#include "histograms.cuh"
#include "partition.cuh"
#include "splits.cuh"
#include "finished_tree.cuh"
#include "best_first.cuh"
#include "levels.cuh"
#include "real.cuh"

namespace {

// The sides of a symmetric tree's last cuts are not cut, so they need no histograms.
__device__ __forceinline__ bool are_sides_counted(const Space& space) {
  return !SYMMETRIC || !space.growth->is_deepest;
}

// Find the best cuts, and say what is opened next.
template <bool WAITS>
__device__ __forceinline__ void search(const Data& data, const Settings& settings, const Space& space) {
  if constexpr (SYMMETRIC) {
    search_by_level<WAITS>(data, settings, space);
  } else {
    search_by_leaf<WAITS>(data, settings, space);
  }
}

// Add the leaves' values to the scores of their documents.
__device__ __forceinline__ void add_values(const Data& data, const Space& space) {
  int* before = shared_memory<int>();
  constexpr int TOGETHER = 4;
  if (space.growth->n_leaves == 0) return;
  const int n_closed = space.growth->n_closed;
  for (int i = threadIdx.x; i < n_closed; i += THREADS) before[i] = space.places[i].before;
  __syncthreads();
  const int step = gridDim.x * THREADS;
  for (int first = blockIdx.x * THREADS + threadIdx.x; first < data.n_docs; first += TOGETHER * step) {
    unsigned row[TOGETHER];
    float value[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      const int place = first + i * step;
      if (place >= data.n_docs) continue;
      int low = 0, high = n_closed;
      while (high - low > 1) {
        const int middle = (low + high) / 2;
        (before[middle] <= place ? low : high) = middle;
      }
      const Places places = space.places[low];
      row[i] = rows_of(space, places.buffer)[places.start + place - places.before];
      value[i] = places.value;
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      if (first + i * step < data.n_docs) space.scores[row[i]] = (Real{space.scores[row[i]]} + Real{value[i]}).value;
    }
  }
}

}  // namespace

extern "C" {

// Grow a tree for the gradients, and add its values to the scores, unless an earlier one has no cut and nothing is
// random. `Growth` is 0 before. All blocks must run at the same time.
__global__ void __launch_bounds__(THREADS, 1)
    grow_tree(const __grid_constant__ Data data, const __grid_constant__ Settings settings,
              const __grid_constant__ Space space) {
  if (*space.stopped != 0) return;
  find_largest<true>(data, space);
  if (!space.growth->finished) {
    sum_sizes<true>(data, settings, space);
    pack<true>(data, settings, space);
  }
  while (!space.growth->finished) {
    const bool are_counted = are_sides_counted(space);
    if (are_counted) clear_slots(data, space);
    divide<true>(data, space, 0, data.n_slabs);
    if (are_counted) count<true>(data, space, 0, data.n_pieces);
    search<true>(data, settings, space);
  }
  add_values(data, space);
  const bool is_last = !settings.is_random && space.growth->n_leaves == 0;
  if (blockIdx.x == 0 && threadIdx.x == 0 && is_last) *space.stopped = 1;
}

// The same, stage by stage, where the slabs do not all fit into the device's memory.
__global__ void __launch_bounds__(THREADS, 1)
    find_units(const __grid_constant__ Data data, const __grid_constant__ Settings settings,
               const __grid_constant__ Space space, int stage) {
  if (stage == 0) {
    find_largest<false>(data, space);
  } else if (space.growth->finished) {
    return;
  } else if (stage == 1) {
    sum_sizes<false>(data, settings, space);
  } else {
    pack<false>(data, settings, space);
  }
}

__global__ void __launch_bounds__(THREADS, 1)
    clear_histograms(const __grid_constant__ Data data, const __grid_constant__ Space space) {
  clear_slots(data, space);
}

__global__ void __launch_bounds__(THREADS, 1)
    divide_parts(const __grid_constant__ Data data, const __grid_constant__ Space space, int first_slab, int end_slab) {
  divide<false>(data, space, first_slab, end_slab);
}

__global__ void __launch_bounds__(THREADS, 1)
    count_parts(const __grid_constant__ Data data, const __grid_constant__ Space space, int first_piece,
                int end_piece) {
  count<false>(data, space, first_piece, end_piece);
}

__global__ void __launch_bounds__(THREADS, 1)
    search_parts(const __grid_constant__ Data data, const __grid_constant__ Settings settings,
                 const __grid_constant__ Space space) {
  search<false>(data, settings, space);
}

__global__ void __launch_bounds__(THREADS, 1)
    add_leaf_values(const __grid_constant__ Data data, const __grid_constant__ Space space) {
  add_values(data, space);
}

// bytes[d] of every column: columns[column][d] = slab[d][column]
__global__ void __launch_bounds__(THREADS, 1)
    gather_columns(const unsigned char* slab, int n_docs, int n_columns, unsigned char* columns) {
  __shared__ unsigned char tile[SLAB_BYTES][SLAB_BYTES + 4];
  for (int first = blockIdx.x * SLAB_BYTES; first < n_docs; first += gridDim.x * SLAB_BYTES) {
    for (int i = threadIdx.x; i < SLAB_BYTES * SLAB_BYTES; i += THREADS) {
      const int document = i / SLAB_BYTES, column = i % SLAB_BYTES;
      if (first + document < n_docs) tile[column][document] = slab[static_cast<size_t>(first) * SLAB_BYTES + i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SLAB_BYTES * n_columns; i += THREADS) {
      const int document = i % SLAB_BYTES, column = i / SLAB_BYTES;
      if (first + document < n_docs)
        columns[static_cast<size_t>(column) * n_docs + first + document] = tile[column][document];
    }
    __syncthreads();
  }
}

}  // extern "C"
