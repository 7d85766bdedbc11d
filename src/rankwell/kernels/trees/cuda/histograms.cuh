// Histograms: of every column, the packed sums of gradient and Hessian by the column's value.
//
// A block counts one *piece* of documents at a time, 16, 32, 48 or 64 columns, into two histograms of 32-bit sums in
// shared memory, one of gradients and one of Hessians; neither sum can overflow (`rules.py`). They lie by value and
// then column, 32 columns in a group, and the lanes of a warp add to 32 different columns at a time, hence to 32
// different banks: a lane has 16 columns of a document and begins with another one than the other lanes have. Of 16
// columns there are two histograms, side by side.

#include "stages.cuh"

namespace {

constexpr int GROUP_COLUMNS = 32;
constexpr int GROUP_CELLS = GROUP_COLUMNS * COLUMN_VALUES;
// Where the histograms of Hessians begin.
constexpr int HESSIANS = GROUPS * GROUP_CELLS;
constexpr int SLAB_CELLS = SLAB_BYTES * COLUMN_VALUES;
// Columns that a lane reads at a time.
constexpr int READ_COLUMNS = 16;
// A warp takes so many documents, a strip. Work is divided in units, strips times lanes that read a document. A block
// has LEAST_UNITS or more; few, since it is one piece after another that takes time if there are few documents.
constexpr int STRIP = 32;
constexpr int LEAST_UNITS = 8;

__device__ __forceinline__ long long* histogram_of(const Data& data, const Space& space, int slot) {
  return space.pool + static_cast<size_t>(slot) * data.n_slabs * SLAB_CELLS;
}

// `bytes` from byte `first` on, and then those before it.
__device__ __forceinline__ uint4 rotated(uint4 bytes, int first) {
  if (first & 8) {
    unsigned kept = bytes.x;
    bytes.x = bytes.z;
    bytes.z = kept;
    kept = bytes.y;
    bytes.y = bytes.w;
    bytes.w = kept;
  }
  if (first & 4) {
    const unsigned kept = bytes.x;
    bytes.x = bytes.y;
    bytes.y = bytes.z;
    bytes.z = bytes.w;
    bytes.w = kept;
  }
  const int shift = 8 * (first & 3);
  return make_uint4(__funnelshift_r(bytes.x, bytes.y, shift), __funnelshift_r(bytes.y, bytes.z, shift),
                    __funnelshift_r(bytes.z, bytes.w, shift), __funnelshift_r(bytes.w, bytes.x, shift));
}

__device__ __forceinline__ void add_bytes(int* histogram, uint4 bytes, int first, int gradient, int hessian) {
  const unsigned words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int value = (words[i / 4] >> (8 * (i % 4))) & 255u;
    int* cell = histogram + value * GROUP_COLUMNS + ((first + i) & 15);
    atomicAdd(cell, gradient);
    atomicAdd(cell + HESSIANS, hessian);
  }
}

// Which document of a strip, and which 16 of its columns, a lane reads in turn `i` of READERS: of 32 columns two lanes
// read a document, of 64 four; the third 16 of 48 columns are read like 16 columns that are all.
struct Share {
  int document, reader;
};

template <int READERS>
__device__ __forceinline__ Share share_of(int i) {
  const int lane = lane_of();
  if (READERS == 1) return {lane, 0};
  if (READERS == 3 && i == 2) return {lane, 2};
  const int readers = READERS == 3 ? 2 : READERS;
  return {i * (32 / readers) + lane / readers, lane % readers};
}

// Add the documents at the places first + 32·from, ..., below `last` and first + 32·to, to the histograms of a piece.
// READERS : columns of the piece / 16
template <int READERS>
__device__ __noinline__ void count_strips(const unsigned char* piece, const unsigned* rows, const long long* packed,
                                          int first, int last, int from, int to) {
  for (int strip = from + warp_of(); strip < to; strip += WARPS) {
    const int place = first + strip * STRIP + lane_of();
    const bool is_there = place < last;
    const unsigned row = is_there ? rows[place] : 0;
    const long long value = is_there ? packed[place] : 0;
    uint4 bytes[READERS];
#pragma unroll
    for (int i = 0; i < READERS; ++i) {
      const Share share = share_of<READERS>(i);
      const size_t own = __shfl_sync(WHOLE_WARP, row, share.document);
      bytes[i] = __ldg(reinterpret_cast<const uint4*>(piece + own * SLAB_BYTES + READ_COLUMNS * share.reader));
    }
#pragma unroll
    for (int i = 0; i < READERS; ++i) {
      const Share share = share_of<READERS>(i);
      const int gradient = __shfl_sync(WHOLE_WARP, gradient_of(value), share.document);
      const int hessian = __shfl_sync(WHOLE_WARP, static_cast<int>(value), share.document);
      const bool is_double = READERS == 1 || (READERS == 3 && i == 2);
      const int rotation =
          READERS == 4 ? lane_of() / 4 * 2 + share.reader / 2 : (is_double ? lane_of() : lane_of() / 2) & 15;
      const int half = is_double ? lane_of() / 16 : share.reader & 1;
      int* mine = shared_memory<int>() + share.reader / 2 * GROUP_CELLS + half * READ_COLUMNS;
      add_bytes(mine, rotated(bytes[i], rotation), rotation, gradient, hessian);
    }
  }
}

__device__ __forceinline__ void count_piece(int readers, const unsigned char* piece, const unsigned* rows,
                                            const long long* packed, int first, int last, int from, int to) {
  if (GROUPS == 2 && readers == 4) {
    count_strips<4>(piece, rows, packed, first, last, from, to);
  } else if (GROUPS == 2 && readers == 3) {
    count_strips<3>(piece, rows, packed, first, last, from, to);
  } else if (readers == 2) {
    count_strips<2>(piece, rows, packed, first, last, from, to);
  } else {
    count_strips<1>(piece, rows, packed, first, last, from, to);
  }
}

// A cell's packed sum, which becomes 0.
__device__ __forceinline__ long long take_cell(int cell) {
  int* histogram = shared_memory<int>();
  const long long sum = histogram[cell] * 4294967296ll + static_cast<unsigned>(histogram[cell + HESSIANS]);
  histogram[cell] = histogram[cell + HESSIANS] = 0;
  return sum;
}

// Add a block's histograms of a piece to those in device memory, and set them to 0.
__device__ __forceinline__ void flush(const Piece& piece, long long* out) {
  const int n_cells = (piece.readers + 1) / 2 * GROUP_CELLS;
  for (int cell = threadIdx.x; cell < n_cells; cell += THREADS) {
    const int group = cell / GROUP_CELLS, column = cell % GROUP_COLUMNS;
    // The last 16 columns of an odd number of readers have two histograms, side by side.
    const bool is_double = (piece.readers & 1) != 0 && group == piece.readers / 2;
    if (is_double && column >= READ_COLUMNS) continue;
    long long sum = take_cell(cell);
    if (is_double) sum += take_cell(cell + READ_COLUMNS);
    if (sum != 0 && group * GROUP_COLUMNS + column < piece.n_columns) add_to(&out[cell], sum);
  }
}

struct Counted {
  int strips, start, end, buffer;
};

// The documents of the smaller side of an opening.
__device__ __forceinline__ Counted smaller_side(const Data& data, const Space& space, const Opening& opening) {
  const Part part = space.parts[max(opening.part, 0)];
  const int n_left = left_documents(data, opening);
  const bool is_left = is_left_smaller(opening, part, n_left);
  Counted side;
  side.start = is_left ? part.start : part.start + n_left;
  side.end = is_left ? part.start + n_left : part.end;
  side.buffer = opening.part < 0 ? 0 : 1 - part.buffer;
  side.strips = (side.end - side.start + STRIP - 1) / STRIP;
  return side;
}

// Count the documents of the smaller side of every opening, the columns of the pieces first_piece, ..., end_piece − 1.
// The work is divided evenly among blocks.
template <bool WAITS>
__device__ __noinline__ void count(const Data& data, const Space& space, int first_piece, int end_piece) {
  __shared__ Counted sides[MOST_OPENINGS];
  const int n_openings = space.growth->n_openings;
  for (int i = threadIdx.x; i < n_openings; i += THREADS) sides[i] = smaller_side(data, space, space.openings[i]);
  __syncthreads();
  long long units = 0;
  for (int i = first_piece; i < end_piece; ++i) units += data.pieces[i].readers;
  long long all = 0;
  for (int i = 0; i < n_openings; ++i) all += sides[i].strips * units;
  const int n_blocks = static_cast<int>(min(static_cast<long long>(gridDim.x), (all + LEAST_UNITS - 1) / LEAST_UNITS));
  if (static_cast<int>(blockIdx.x) < n_blocks) {
    for (int i = threadIdx.x; i < HESSIANS / 2; i += THREADS) shared_memory<int4>()[i] = make_int4(0, 0, 0, 0);
    __syncthreads();
    const long long at = all * blockIdx.x / n_blocks, end = all * (blockIdx.x + 1) / n_blocks;
    long long before = 0;
    for (int i = 0; i < n_openings && before < end; before += sides[i++].strips * units) {
      const Counted side = sides[i];
      if (before + side.strips * units <= at) continue;
      long long piece_before = before;
      for (int number = first_piece; number < end_piece && piece_before < end; ++number) {
        const Piece piece = data.pieces[number];
        // The strips whose first unit is this block's.
        const long long own = static_cast<long long>(side.strips) * piece.readers;
        const long long first = max(at - piece_before, 0ll), last = min(end - piece_before, own);
        piece_before += own;
        const int from = static_cast<int>((first + piece.readers - 1) / piece.readers);
        const int to = static_cast<int>((last + piece.readers - 1) / piece.readers);
        if (from >= to) continue;
        const unsigned char* bytes = reinterpret_cast<const unsigned char*>(data.slabs[piece.slab]) + piece.offset;
        count_piece(piece.readers, bytes, rows_of(space, side.buffer), packed_of(space, side.buffer), side.start,
                    side.end, from, to);
        __syncthreads();
        flush(piece, histogram_of(data, space, space.openings[i].slot) + static_cast<size_t>(piece.slab) * SLAB_CELLS +
                         piece.offset / GROUP_COLUMNS * GROUP_CELLS + piece.offset % GROUP_COLUMNS);
        __syncthreads();
      }
    }
  }
  end_stage<WAITS>(space.growth, [] {});
}

}  // namespace
