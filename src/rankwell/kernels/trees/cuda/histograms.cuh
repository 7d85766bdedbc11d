// Histograms: of every column, the packed sums of gradient and Hessian by the column's value.
//
// A block counts one *piece* of documents at a time, 16, 32, 48 or 64 columns, into two histograms of 32-bit sums in
// shared memory, one of gradients and one of Hessians; neither sum can overflow (`rules.py`). They lie by value and
// then column, 32 columns in a group, and the lanes of a warp add to 32 different columns at a time, hence to 32
// different banks: a lane has 16 columns of a document and begins with another one than the other lanes have. Of 16
// columns there are two histograms, side by side. At its end, a block adds its histograms to those in device memory,
// which is the more work the more cells there are, not documents; so few documents are added there one by one.

#include "stages.cuh"

namespace {

constexpr int GROUP_COLUMNS = 32;
constexpr int GROUP_CELLS = GROUP_COLUMNS * COLUMN_VALUES;
// Where the histograms of Hessians begin.
constexpr int HESSIANS = GROUPS * GROUP_CELLS;
constexpr int SLAB_CELLS = SLAB_BYTES * COLUMN_VALUES;
// Columns that a lane reads at a time.
constexpr int READ_COLUMNS = 16;
// A warp takes so many documents, a strip. Work is divided in units, strips times lanes that read a document; each
// piece of a side counts as PIECE_UNITS more, for its histograms. A block has LEAST_UNITS or more.
constexpr int STRIP = 32;
constexpr int LEAST_UNITS = 200;
constexpr int PIECE_UNITS = 400;
// The documents of sides with no more strips are added one by one.
constexpr int FEW_STRIPS = 4;

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

// Bytes from column `first` on. histogram : of its 16 columns, at a multiple of 64 bytes
__device__ __forceinline__ void add_bytes(char* histogram, uint4 bytes, int first, int gradient, int hessian) {
  constexpr int ROW_BITS = 7, CELL_BITS = 2;
  static_assert(sizeof(int) << 5 == 1 << ROW_BITS && GROUP_COLUMNS == 32, "a row of cells has 32 columns");
  const unsigned words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int shift = 8 * (i % 4) - ROW_BITS;
    const unsigned value = shift < 0 ? words[i / 4] << -shift : words[i / 4] >> shift;
    const unsigned column = ((first + i) << CELL_BITS) & (15u << CELL_BITS);
    int* cell = reinterpret_cast<int*>(histogram + ((value & (255u << ROW_BITS)) | column));
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

__device__ __forceinline__ uint4 read_bytes(const uint4* from) {
#ifdef __CUDACC__
  uint4 value;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(__cvta_generic_to_global(from)));
  return value;
#else
  return *from;
#endif
}

// A document of a strip.
struct Document {
  unsigned row;
  long long value;
};

__device__ __forceinline__ Document document_at(const unsigned* rows, const long long* packed, int place, int end) {
  Document document = {0, 0};
  if (place >= end) return document;
#ifdef __CUDACC__
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(document.row) : "l"(__cvta_generic_to_global(rows + place)));
  asm volatile("ld.global.s64 %0, [%1];" : "=l"(document.value) : "l"(__cvta_generic_to_global(packed + place)));
#else
  document = {rows[place], packed[place]};
#endif
  return document;
}

// Add the documents at the places first + 32·from, ..., below `last` and first + 32·to, to the histograms of a piece.
// The documents of a warp's next strip are read while those of one are added. READERS : columns of the piece / 16
template <int READERS>
__device__ __noinline__ void count_strips(const unsigned char* piece, const unsigned* rows, const long long* packed,
                                          int first, int last, int from, int to) {
  const int end = min(last, first + to * STRIP);
  int place = first + (from + warp_of()) * STRIP + lane_of();
  Document next = document_at(rows, packed, place, end);
#pragma unroll 1
  for (int strip = from + warp_of(); strip < to; strip += WARPS) {
    const Document document = next;
    uint4 bytes[READERS];
#pragma unroll
    for (int i = 0; i < READERS; ++i) {
      const Share share = share_of<READERS>(i);
      const size_t own = __shfl_sync(WHOLE_WARP, document.row, share.document);
      bytes[i] = read_bytes(reinterpret_cast<const uint4*>(piece + own * SLAB_BYTES + READ_COLUMNS * share.reader));
    }
    place += WARPS * STRIP;
    next = document_at(rows, packed, place, end);
    // All that was asked for is on its way: the compiler would ask for each 16 columns when it needs them.
    __syncwarp();
#pragma unroll
    for (int i = 0; i < READERS; ++i) {
      const Share share = share_of<READERS>(i);
      const int gradient = __shfl_sync(WHOLE_WARP, gradient_of(document.value), share.document);
      const int hessian = __shfl_sync(WHOLE_WARP, static_cast<int>(document.value), share.document);
      const bool is_double = READERS == 1 || (READERS == 3 && i == 2);
      const int rotation =
          READERS == 4 ? lane_of() / 4 * 2 + share.reader / 2 : (is_double ? lane_of() : lane_of() / 2) & 15;
      const int half = is_double ? lane_of() / 16 : share.reader & 1;
      int* mine = shared_memory<int>() + share.reader / 2 * GROUP_CELLS + half * READ_COLUMNS;
      add_bytes(reinterpret_cast<char*>(mine), rotated(bytes[i], rotation), rotation, gradient, hessian);
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

// Add a block's histograms of a piece to those in device memory, and set them to 0. Blocks begin at different places,
// so that they do not wait for each other's additions.
__device__ __forceinline__ void flush(const Piece& piece, long long* out) {
  constexpr int ROUNDS = GROUP_CELLS / THREADS;
  const int column = threadIdx.x % GROUP_COLUMNS;
#pragma unroll 1
  for (int group = 0; group < (piece.readers + 1) / 2; ++group) {
    // The last 16 columns of an odd number of readers have two histograms, side by side.
    const bool is_double = (piece.readers & 1) != 0 && group == piece.readers / 2;
    const bool is_kept = group * GROUP_COLUMNS + column < piece.n_columns && (!is_double || column < READ_COLUMNS);
#pragma unroll 4
    for (int i = 0; i < ROUNDS; ++i) {
      const int cell = group * GROUP_CELLS + (i + blockIdx.x) % ROUNDS * THREADS + threadIdx.x;
      int* own = shared_memory<int>() + cell;
      int gradient = own[0], hessian = own[HESSIANS];
      own[0] = own[HESSIANS] = 0;
      if (is_double) {
        gradient += __shfl_xor_sync(WHOLE_WARP, gradient, READ_COLUMNS);
        hessian += __shfl_xor_sync(WHOLE_WARP, hessian, READ_COLUMNS);
      }
      if (is_kept && (gradient | hessian) != 0) {
        add_to(&out[cell], gradient * 4294967296ll + static_cast<unsigned>(hessian));
      }
    }
  }
}

// The documents that an opening counts, and the units of work before them: of blocks, and of warps that add one by one.
struct Counted {
  long long units_before, few_before;
  int strips, start, end, buffer, slot;
};

// The smaller side.
__device__ __forceinline__ Counted counted_side(const Data& data, const Space& space, const Opening& opening) {
  const Part part = space.parts[max(opening.part, 0)];
  const int n_left = left_documents(data, opening);
  const bool is_left = is_left_smaller(opening, part, n_left);
  const int start = is_left ? part.start : part.start + n_left, end = is_left ? part.start + n_left : part.end;
  const int buffer = opening.part < 0 ? 0 : 1 - part.buffer;
  return {0, 0, (end - start + STRIP - 1) / STRIP, start, end, buffer, opening.slot};
}

// What is counted of the pieces first_piece, ..., end_piece − 1. The last of `sides` has the sums of all units.
struct Work {
  int first_piece, end_piece, n_readers, n_openings;
  Counted* sides;
};

__device__ __forceinline__ Work find_work(const Data& data, const Space& space, int first_piece, int end_piece,
                                          Counted* sides) {
  Work work = {first_piece, end_piece, 0, space.growth->n_openings, sides};
  for (int i = first_piece; i < end_piece; ++i) work.n_readers += data.pieces[i].readers;
  for (int i = threadIdx.x; i < work.n_openings; i += THREADS) {
    sides[i] = counted_side(data, space, space.openings[i]);
  }
  __syncthreads();
  if (warp_of() == 0) {
    long long units = 0, few = 0;
    for (int first = 0; first <= work.n_openings; first += 32) {
      const int i = first + lane_of();
      const int strips = i < work.n_openings ? sides[i].strips : 0;
      const long long own = static_cast<long long>(strips) * work.n_readers;
      const bool are_few = strips <= FEW_STRIPS;
      const long long own_few = are_few ? own : 0;
      const long long own_units = are_few ? 0 : own + static_cast<long long>(end_piece - first_piece) * PIECE_UNITS;
      const long long units_so_far = units + running_sum(own_units), few_so_far = few + running_sum(own_few);
      if (i <= work.n_openings) {
        sides[i].units_before = units_so_far - own_units;
        sides[i].few_before = few_so_far - own_few;
      }
      units = __shfl_sync(WHOLE_WARP, units_so_far, 31);
      few = __shfl_sync(WHOLE_WARP, few_so_far, 31);
    }
  }
  __syncthreads();
  return work;
}

// The last opening that has no more units before it than these.
__device__ __forceinline__ int opening_at(const Work& work, long long Counted::* before, long long units) {
  int low = 0, high = work.n_openings;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (work.sides[middle].*before <= units ? low : high) = middle;
  }
  return low;
}

// Where the histograms of a piece begin.
__device__ __forceinline__ long long* cells_of(const Data& data, const Space& space, int slot, const Piece& piece) {
  return histogram_of(data, space, slot) + static_cast<size_t>(piece.slab) * SLAB_CELLS +
         piece.offset / GROUP_COLUMNS * GROUP_CELLS + piece.offset % GROUP_COLUMNS;
}

__device__ __forceinline__ const unsigned char* bytes_of(const Data& data, const Piece& piece) {
  return reinterpret_cast<const unsigned char*>(data.slabs[piece.slab]) + piece.offset;
}

// Add the documents of small sides to the histograms in device memory: a warp a strip and 16 columns at a time.
__device__ __forceinline__ void count_few(const Data& data, const Space& space, const Work& work) {
  const long long all = work.sides[work.n_openings].few_before;
  for (long long unit = warp_of() * gridDim.x + blockIdx.x; unit < all; unit += WARPS * gridDim.x) {
    const Counted side = work.sides[opening_at(work, &Counted::few_before, unit)];
    const int own = static_cast<int>(unit - side.few_before);
    int number = work.first_piece, reader = own % work.n_readers;
    while (reader >= data.pieces[number].readers) reader -= data.pieces[number++].readers;
    const Piece piece = data.pieces[number];
    const int place = side.start + own / work.n_readers * STRIP + lane_of();
    if (place >= side.end) continue;
    const size_t row = rows_of(space, side.buffer)[place];
    const long long value = packed_of(space, side.buffer)[place];
    const int first = reader * READ_COLUMNS;
    const uint4 bytes = __ldg(reinterpret_cast<const uint4*>(bytes_of(data, piece) + row * SLAB_BYTES + first));
    const unsigned words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
    long long* out =
        cells_of(data, space, side.slot, piece) + first / GROUP_COLUMNS * GROUP_CELLS + first % GROUP_COLUMNS;
#pragma unroll
    for (int i = 0; i < READ_COLUMNS; ++i) {
      const int of_column = (words[i / 4] >> (8 * (i % 4))) & 255u;
      if (first + i < piece.n_columns) add_to(&out[of_column * GROUP_COLUMNS + i], value);
    }
  }
}

// Count a block's part of the other sides.
__device__ __forceinline__ void count_many(const Data& data, const Space& space, const Work& work) {
  const long long all = work.sides[work.n_openings].units_before;
  const int n_blocks = static_cast<int>(min(static_cast<long long>(gridDim.x), (all + LEAST_UNITS - 1) / LEAST_UNITS));
  if (static_cast<int>(blockIdx.x) >= n_blocks) return;
  for (int i = threadIdx.x; i < HESSIANS / 2; i += THREADS) shared_memory<int4>()[i] = make_int4(0, 0, 0, 0);
  __syncthreads();
  const long long at = all * blockIdx.x / n_blocks, end = all * (blockIdx.x + 1) / n_blocks;
  for (int i = opening_at(work, &Counted::units_before, at); i < work.n_openings; ++i) {
    const Counted side = work.sides[i];
    if (side.units_before >= end) break;
    if (side.strips <= FEW_STRIPS) continue;
    long long before = side.units_before;
    for (int number = work.first_piece; number < work.end_piece && before < end; ++number) {
      const Piece piece = data.pieces[number];
      // The strips whose first unit is this block's.
      before += PIECE_UNITS;
      const long long own = static_cast<long long>(side.strips) * piece.readers;
      const long long first = max(at - before, 0ll), last = min(end - before, own);
      before += own;
      if (last <= 0) continue;
      const int from = static_cast<int>((first + piece.readers - 1) / piece.readers);
      const int to = static_cast<int>((last + piece.readers - 1) / piece.readers);
      if (from >= to) continue;
      count_piece(piece.readers, bytes_of(data, piece), rows_of(space, side.buffer), packed_of(space, side.buffer),
                  side.start, side.end, from, to);
      __syncthreads();
      flush(piece, cells_of(data, space, side.slot, piece));
      __syncthreads();
    }
  }
}

// Count the documents of the smaller side of every opening, the columns of the pieces first_piece, ..., end_piece − 1.
// The work is divided evenly among blocks.
template <bool WAITS>
__device__ __forceinline__ void count(const Data& data, const Space& space, int first_piece, int end_piece) {
  __shared__ Counted sides[MOST_OPENINGS + 1];
  const Work work = find_work(data, space, first_piece, end_piece, sides);
  count_few(data, space, work);
  count_many(data, space, work);
  end_stage<WAITS>(space.growth, [] {});
}

}  // namespace
