// The documents of parts that are being opened, by side: the left ones from the start of the part's places on, the
// right ones before their end. Tiles of documents are moved in any order; the order within one is kept, so that
// documents that are read together stay near each other.

#include "category_splits.cuh"
#include "histograms.cuh"
#include "stages.cuh"

namespace {

constexpr unsigned NO_ROW = 0xffffffffu;
// A block's documents of a tile, one after another for each thread.
constexpr int TILE_ROUNDS = 4;
constexpr int TILE = TILE_ROUNDS * THREADS;
static_assert(TILE < 1 << 16, "numbers of a tile's documents are halves of 32 bits");
// A group is the documents of a round and a warp.
constexpr int TILE_GROUPS = TILE_ROUNDS * WARPS;

// How many documents of a group go left and right, in the upper and lower half; then, how many of the groups before.
struct Moves {
  unsigned sides[TILE_GROUPS];
  int left, right;  // where the tile's documents begin
};

// Which values of the cut's column go left. set : of the cut, if it has one; goes_left : (COLUMN_VALUES,)
__device__ __forceinline__ void mark_sides(const Data& data, const Part& part, const unsigned* set,
                                           unsigned char* goes_left) {
  const int* feature = data.by_feature + part.feature * FEATURE_INTEGERS;
  const unsigned divisor = feature[DIVISOR], n_codes = feature[N_CODES];
#pragma unroll 1
  for (unsigned value = threadIdx.x; value < COLUMN_VALUES; value += THREADS) {
    const int code = static_cast<int>(value / divisor % n_codes);
    const bool is_missing = code == 0 && feature[HAS_MISSING] != 0;
    goes_left[value] = is_missing ? part.missing_left != 0 : code <= part.code;
    if (CATEGORICAL && part.code < 0) goes_left[value] = has_code(set, code);
  }
}

// Find places for the documents of a tile, by the first warp.
__device__ __forceinline__ void reserve(const Part& part, Moves& moves, Opening* opening) {
  constexpr int OWN = (TILE_GROUPS + 31) / 32;
  unsigned before[OWN], own = 0;
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int group = lane_of() * OWN + i;
    before[i] = own;
    own += group < TILE_GROUPS ? moves.sides[group] : 0;
  }
  const unsigned so_far = running_sum(own), all = __shfl_sync(WHOLE_WARP, so_far, 31);
  if (lane_of() == 0) {
    const unsigned long long left = all >> 16, right = all & 0xffffu;
    const unsigned long long earlier =
        atomicAdd(reinterpret_cast<unsigned long long*>(&opening->sides), (left << 32) + right);
    moves.left = part.start + static_cast<int>(earlier >> 32);
    moves.right = part.end - static_cast<int>((earlier & LOWER_HALF) + right);
  }
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int group = lane_of() * OWN + i;
    if (group < TILE_GROUPS) moves.sides[group] = so_far - own + before[i];
  }
}

// Bytes of the column of a part's cut, and how far apart those of documents are.
struct Column {
  const unsigned char* bytes;
  size_t stride;
};

__device__ __forceinline__ Column cut_column(const Data& data, const Part& part) {
  const int column = data.by_feature[part.feature * FEATURE_INTEGERS + COLUMN];
  if (data.has_columns) return {data.columns + static_cast<size_t>(column) * data.n_docs, 1};
  const unsigned long long slab = data.slabs[column / data.slab_columns];
  return {reinterpret_cast<const unsigned char*>(slab) + column % data.slab_columns, SLAB_BYTES};
}

// Of the tiles of a part, those that a block moves: first, first + step, ..., below `end`.
struct Tiles {
  int first, step, end;
};

// Move the documents of some tiles. Those of the next tile are read while those of one find their places.
// alternating : a tile can begin while threads still move the documents of the one before; n_moved : tiles so far
__device__ __forceinline__ void move_tiles(const Data& data, const Space& space, Opening* opening, const Part& part,
                                           const Tiles& tiles, const unsigned char* goes_left, Moves (&alternating)[2],
                                           int& n_moved) {
  const Column column = cut_column(data, part);
  const unsigned* rows = rows_of(space, part.buffer);
  const long long* packed = packed_of(space, part.buffer);
  unsigned* moved_rows = rows_of(space, 1 - part.buffer);
  long long* moved_packed = packed_of(space, 1 - part.buffer);
  const unsigned lower_lanes = (1u << lane_of()) - 1u;
  unsigned next_row[TILE_ROUNDS];
  long long next_sums[TILE_ROUNDS];
  const auto read = [&](int tile) {
#pragma unroll
    for (int i = 0; i < TILE_ROUNDS; ++i) {
      const int place = part.start + (tile * TILE_ROUNDS + i) * THREADS + threadIdx.x;
      const bool is_there = tile < tiles.end && place < part.end;
      next_row[i] = is_there ? rows[place] : NO_ROW;
      next_sums[i] = is_there ? packed[place] : 0;
    }
  };
  read(tiles.first);
#pragma unroll 1
  for (int tile = tiles.first; tile < tiles.end; tile += tiles.step) {
    Moves& moves = alternating[n_moved++ % 2];
    unsigned row[TILE_ROUNDS], is_left[TILE_ROUNDS], same_side[TILE_ROUNDS];
    long long sums[TILE_ROUNDS];
#pragma unroll
    for (int i = 0; i < TILE_ROUNDS; ++i) {
      row[i] = next_row[i];
      sums[i] = next_sums[i];
      is_left[i] = row[i] == NO_ROW ? 0 : __ldg(column.bytes + row[i] * column.stride);
    }
    read(tile + tiles.step);
#pragma unroll
    for (int i = 0; i < TILE_ROUNDS; ++i) {
      is_left[i] = goes_left[is_left[i]];
      const unsigned left = __ballot_sync(WHOLE_WARP, row[i] != NO_ROW && is_left[i] != 0);
      const unsigned right = __ballot_sync(WHOLE_WARP, row[i] != NO_ROW && is_left[i] == 0);
      if (lane_of() == 0) moves.sides[i * WARPS + warp_of()] = __popc(left) << 16 | __popc(right);
      same_side[i] = is_left[i] != 0 ? left : right;
    }
    __syncthreads();
    if (warp_of() == 0) reserve(part, moves, opening);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE_ROUNDS; ++i) {
      if (row[i] == NO_ROW) continue;
      const unsigned before = moves.sides[i * WARPS + warp_of()];
      const int base = is_left[i] != 0 ? moves.left + (before >> 16) : moves.right + (before & 0xffffu);
      const int place = base + __popc(same_side[i] & lower_lanes);
      moved_rows[place] = row[i];
      moved_packed[place] = sums[i];
    }
  }
}

// Once an opening's documents are divided, one of its sides becomes a part, whose best cut is not known yet.
__device__ __forceinline__ void make_side(const Data& data, const Space& space, const Opening& opening, int side) {
  const Part part = space.parts[opening.part];
  const int n_left = left_documents(data, opening);
  const bool is_smaller = is_left_smaller(opening, part, n_left) == (side == 0);
  Part& own = space.parts[opening.left + side];
  own.total = side == 0 ? part.left_total : part.total - part.left_total;
  own.start = side == 0 ? part.start : part.start + n_left;
  own.end = side == 0 ? part.start + n_left : part.end;
  own.buffer = 1 - part.buffer;
  own.slot = is_smaller ? opening.slot : part.slot;
  own.depth = part.depth + 1;
  own.above = opening.part;
  own.left = own.leaf = own.node = -1;
}

__device__ __forceinline__ void make_sides(const Data& data, const Space& space) {
  for (int i = threadIdx.x; i < 2 * space.growth->n_openings; i += THREADS) {
    const Opening opening = space.openings[i / 2];
    if (opening.part >= 0) make_side(data, space, opening, i % 2);
  }
}

// Move the documents of the openings whose column is in the slabs first_slab, ..., end_slab − 1.
template <bool WAITS>
__device__ __forceinline__ void divide(const Data& data, const Space& space, int first_slab, int end_slab) {
  __shared__ Moves alternating[2];
  __shared__ unsigned char goes_left[COLUMN_VALUES];
  __shared__ int tiles[MOST_OPENINGS];
  const int n_openings = space.growth->n_openings;
  for (int i = threadIdx.x; i < n_openings; i += THREADS) {
    const int number = space.openings[i].part;
    tiles[i] = 0;
    if (number >= 0) {
      const Part part = space.parts[number];
      const int slab = data.by_feature[part.feature * FEATURE_INTEGERS + COLUMN] / data.slab_columns;
      if (slab >= first_slab && slab < end_slab) tiles[i] = (documents_of(part) + TILE - 1) / TILE;
    }
  }
  __syncthreads();
  int before = 0, n_moved = 0;
  for (int i = 0; i < n_openings; before += tiles[i++]) {
    // A block's first tile of a part is the first one whose number over all parts is its own, modulo the blocks.
    const int first = (blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x;
    if (first >= tiles[i]) continue;
    Opening* opening = &space.openings[i];
    const Part part = space.parts[opening->part];
    const Tiles own = {first, static_cast<int>(gridDim.x), tiles[i]};
    // All threads have read the marks of the last part: they have met since.
    mark_sides(data, part, set_of(space, opening->part), goes_left);
    __syncthreads();
    move_tiles(data, space, opening, part, own, goes_left, alternating, n_moved);
  }
  end_stage<WAITS>(space.growth, [&] {
    // A search leaf by leaf makes them along with their cuts.
    if constexpr (SYMMETRIC) make_sides(data, space);
  });
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
