// The documents of parts that are being opened, by side: the left ones from the start of the part's places on, the
// right ones before their end. Tiles of documents are moved in any order; the order within one is kept, so that
// documents that are read together stay near each other.

#include "stages.cuh"
#include "histograms.cuh"

namespace {

constexpr int TILE_ROUNDS = 4;
constexpr int TILE = TILE_ROUNDS * THREADS;

struct Sides {
  unsigned goes_left[COLUMN_VALUES / 32];                     // a bit for each value of the column
  int left[TILE_ROUNDS * WARPS], right[TILE_ROUNDS * WARPS];  // documents before those of a round and warp
  int left_base, right_base;
};

// Which values of the cut's column go left.
__device__ __forceinline__ void mark_sides(const Data& data, const Part& part, Sides& sides) {
  const int* feature = data.by_feature + part.feature * FEATURE_INTEGERS;
  for (int value = threadIdx.x; value < COLUMN_VALUES; value += THREADS) {
    const int code = value / feature[DIVISOR] % feature[N_CODES];
    const bool is_missing = code == 0 && feature[HAS_MISSING] != 0;
    const bool is_left = is_missing ? part.missing_left != 0 : code <= part.code;
    const unsigned bits = __ballot_sync(WHOLE_WARP, is_left);
    if (lane_of() == 0) sides.goes_left[value / 32] = bits;
  }
}

// Running sums over a tile's rounds and warps, by the first warp, and room for its documents.
__device__ __forceinline__ void reserve(Sides& sides, Opening* opening) {
  constexpr int OWN = (TILE_ROUNDS * WARPS + 31) / 32;
  int left[OWN], right[OWN], left_sum = 0, right_sum = 0;
  for (int i = 0; i < OWN; ++i) {
    const int at = lane_of() * OWN + i;
    left[i] = left_sum;
    right[i] = right_sum;
    left_sum += at < TILE_ROUNDS * WARPS ? sides.left[at] : 0;
    right_sum += at < TILE_ROUNDS * WARPS ? sides.right[at] : 0;
  }
  int left_before = left_sum, right_before = right_sum;
  for (int apart = 1; apart < 32; apart *= 2) {
    const int more_left = __shfl_up_sync(WHOLE_WARP, left_before, apart);
    const int more_right = __shfl_up_sync(WHOLE_WARP, right_before, apart);
    if (lane_of() >= apart) {
      left_before += more_left;
      right_before += more_right;
    }
  }
  const int all_left = __shfl_sync(WHOLE_WARP, left_before, 31), all_right = __shfl_sync(WHOLE_WARP, right_before, 31);
  __syncwarp();
  for (int i = 0; i < OWN; ++i) {
    const int at = lane_of() * OWN + i;
    if (at < TILE_ROUNDS * WARPS) {
      sides.left[at] = left_before - left_sum + left[i];
      sides.right[at] = right_before - right_sum + right[i];
    }
  }
  if (lane_of() == 0) {
    const unsigned long long own = (static_cast<unsigned long long>(all_left) << 32) + static_cast<unsigned>(all_right);
    const unsigned long long before = atomicAdd(reinterpret_cast<unsigned long long*>(&opening->sides), own);
    sides.left_base = static_cast<int>(before >> 32);
    sides.right_base = static_cast<int>(before & LOWER_HALF) + all_right;
  }
}

__device__ __forceinline__ void move_tile(const Data& data, const Space& space, Opening* opening, int tile,
                                          Sides& sides) {
  const Part part = space.parts[opening->part];
  mark_sides(data, part, sides);
  const int column = data.by_feature[part.feature * FEATURE_INTEGERS + COLUMN];
  const int slab = column / data.slab_columns;
  const unsigned char* bytes = data.columns + static_cast<size_t>(column) * data.n_docs;
  if (!data.has_columns) bytes = reinterpret_cast<const unsigned char*>(data.slabs[slab]) + column % data.slab_columns;
  const size_t stride = data.has_columns ? 1 : SLAB_BYTES;
  const unsigned* rows = rows_of(space, part.buffer);
  const long long* packed = packed_of(space, part.buffer);
  unsigned* moved_rows = rows_of(space, 1 - part.buffer);
  long long* moved_packed = packed_of(space, 1 - part.buffer);
  unsigned row[TILE_ROUNDS], value[TILE_ROUNDS], left[TILE_ROUNDS], right[TILE_ROUNDS];
  long long sums[TILE_ROUNDS];
  const int first = part.start + tile * TILE + threadIdx.x;
#pragma unroll
  for (int i = 0; i < TILE_ROUNDS; ++i) {
    const bool is_there = first + i * THREADS < part.end;
    row[i] = is_there ? rows[first + i * THREADS] : 0;
    sums[i] = is_there ? packed[first + i * THREADS] : 0;
  }
#pragma unroll
  for (int i = 0; i < TILE_ROUNDS; ++i) value[i] = __ldg(bytes + row[i] * stride);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < TILE_ROUNDS; ++i) {
    const bool is_there = first + i * THREADS < part.end;
    const bool is_left = (sides.goes_left[value[i] / 32] >> (value[i] % 32)) & 1u;
    left[i] = __ballot_sync(WHOLE_WARP, is_there && is_left);
    right[i] = __ballot_sync(WHOLE_WARP, is_there && !is_left);
    if (lane_of() == 0) {
      sides.left[i * WARPS + warp_of()] = __popc(left[i]);
      sides.right[i * WARPS + warp_of()] = __popc(right[i]);
    }
  }
  __syncthreads();
  if (warp_of() == 0) reserve(sides, opening);
  __syncthreads();
  const unsigned lower_lanes = (1u << lane_of()) - 1u;
#pragma unroll
  for (int i = 0; i < TILE_ROUNDS; ++i) {
    if (first + i * THREADS >= part.end) continue;
    const bool is_left = (left[i] >> lane_of()) & 1u;
    const int group = i * WARPS + warp_of();
    const int place = is_left ? part.start + sides.left_base + sides.left[group] + __popc(left[i] & lower_lanes)
                              : part.end - sides.right_base + sides.right[group] + __popc(right[i] & lower_lanes);
    moved_rows[place] = row[i];
    moved_packed[place] = sums[i];
  }
  __syncthreads();
}

// Move the documents of the openings whose column is in the slabs first_slab, ..., end_slab − 1.
template <bool WAITS>
__device__ __noinline__ void divide(const Data& data, const Space& space, int first_slab, int end_slab) {
  __shared__ Sides sides;
  __shared__ int tiles[MOST_OPENINGS];
  const int n_openings = space.growth->n_openings;
  for (int i = threadIdx.x; i < n_openings; i += THREADS) {
    const int part = space.openings[i].part;
    tiles[i] = 0;
    if (part >= 0) {
      const int column = data.by_feature[space.parts[part].feature * FEATURE_INTEGERS + COLUMN];
      const int slab = column / data.slab_columns;
      const bool is_here = slab >= first_slab && slab < end_slab;
      tiles[i] = is_here ? (documents_of(space.parts[part]) + TILE - 1) / TILE : 0;
    }
  }
  __syncthreads();
  int before = 0, opening = 0;
  for (int tile = blockIdx.x;; tile += gridDim.x) {
    while (opening < n_openings && tile >= before + tiles[opening]) before += tiles[opening++];
    if (opening == n_openings) break;
    move_tile(data, space, &space.openings[opening], tile - before, sides);
  }
  end_stage<WAITS>(space.growth, [] {});
}

// Set the histograms that the openings are counted into to 0.
__device__ __forceinline__ void clear_slots(const Data& data, const Space& space) {
  const int n_openings = space.growth->n_openings;
  const size_t cells = static_cast<size_t>(data.n_slabs) * SLAB_CELLS / 2;
  for (int i = 0; i < n_openings; ++i) {
    longlong2* histogram = reinterpret_cast<longlong2*>(histogram_of(data, space, space.openings[i].slot));
    for (size_t at = blockIdx.x * THREADS + threadIdx.x; at < cells; at += gridDim.x * THREADS) {
      histogram[at] = make_longlong2(0, 0);
    }
  }
}

}  // namespace
