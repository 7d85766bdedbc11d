// Histograms: of every column, the packed sums of gradient and Hessian by the column's value.
//
// A block counts *pieces* of documents, GROUPS · 32 columns each, into two histograms of 32-bit sums in shared memory,
// one of gradients and one of Hessians; neither sum can overflow (`rules.py`). They lie by value and then column, and
// the lanes of a warp add to 32 different columns at a time, hence to 32 different banks: a lane has 16 columns of a
// document and begins with another one than the other lanes have.

#include "stages.cuh"

namespace {

constexpr int GROUP_COLUMNS = 32;
constexpr int GROUP_CELLS = GROUP_COLUMNS * COLUMN_VALUES;
constexpr int CELLS = GROUPS * GROUP_CELLS;
constexpr int PIECE_BYTES = GROUPS * GROUP_COLUMNS;
constexpr int PIECES = SLAB_BYTES / PIECE_BYTES;
constexpr int SLAB_CELLS = SLAB_BYTES * COLUMN_VALUES;
// Lanes that read a document's piece, 16 bytes each; documents that a warp reads at a time.
constexpr int READERS = PIECE_BYTES / 16;
constexpr int READ_DOCUMENTS = 32 / READERS;
// A warp takes so many documents, a strip. Fewer strips than LEAST_STRIPS are not shared between blocks.
constexpr int STRIP = 32;
constexpr int LEAST_STRIPS = 2 * WARPS;

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
    atomicAdd(cell + CELLS, hessian);
  }
}

// Add the documents at the places first + 32·from, ..., below `last` and first + 32·to, to the histograms of a piece.
__device__ __noinline__ void count_strips(const unsigned char* piece, const unsigned* rows, const long long* packed,
                                          int first, int last, int from, int to) {
  int* histogram = shared_memory<int>();
  const int reader = lane_of() % READERS, document = lane_of() / READERS;
  const int rotation = document * (READERS / 2) + reader / 2;
  int* mine = histogram + (reader / 2) * GROUP_CELLS + (reader & 1) * 16;
  for (int strip = from + warp_of(); strip < to; strip += WARPS) {
    const int place = first + strip * STRIP + lane_of();
    const bool is_there = place < last;
    const unsigned row = is_there ? rows[place] : 0;
    const long long value = is_there ? packed[place] : 0;
    uint4 bytes[READERS];
#pragma unroll
    for (int i = 0; i < READERS; ++i) {
      const size_t own = __shfl_sync(WHOLE_WARP, row, i * READ_DOCUMENTS + document);
      bytes[i] = __ldg(reinterpret_cast<const uint4*>(piece + own * SLAB_BYTES + 16 * reader));
    }
#pragma unroll
    for (int i = 0; i < READERS; ++i) {
      const int gradient = __shfl_sync(WHOLE_WARP, gradient_of(value), i * READ_DOCUMENTS + document);
      const int hessian = __shfl_sync(WHOLE_WARP, static_cast<int>(value), i * READ_DOCUMENTS + document);
      add_bytes(mine, rotated(bytes[i], rotation), rotation, gradient, hessian);
    }
  }
}

// Add a block's histograms of a piece to those in device memory, and set them to 0.
__device__ __forceinline__ void flush(int n_columns, long long* out) {
  int* histogram = shared_memory<int>();
  for (int i = threadIdx.x; i < CELLS; i += THREADS) {
    const int column = i / GROUP_CELLS * GROUP_COLUMNS + i % GROUP_COLUMNS;
    const long long sum = histogram[i] * 4294967296ll + static_cast<unsigned>(histogram[i + CELLS]);
    histogram[i] = histogram[i + CELLS] = 0;
    if (sum != 0 && column < n_columns) add_to(&out[i], sum);
  }
}

// Count the documents of the smaller side of every opening, the columns of the slabs first_slab, ..., end_slab − 1. The
// strips of all sides and pieces are divided evenly among blocks.
template <bool WAITS>
__device__ __noinline__ void count(const Data& data, const Space& space, int first_slab, int end_slab) {
  __shared__ int strips[MOST_OPENINGS], starts[MOST_OPENINGS], ends[MOST_OPENINGS], buffers[MOST_OPENINGS];
  const int n_openings = space.growth->n_openings;
  for (int i = threadIdx.x; i < n_openings; i += THREADS) {
    const Opening opening = space.openings[i];
    const Part part = space.parts[max(opening.part, 0)];
    const int n_left = left_documents(data, opening);
    const bool is_left = is_left_smaller(opening, part, n_left);
    starts[i] = is_left ? part.start : part.start + n_left;
    ends[i] = is_left ? part.start + n_left : part.end;
    buffers[i] = opening.part < 0 ? 0 : 1 - part.buffer;
    strips[i] = (ends[i] - starts[i] + STRIP - 1) / STRIP;
  }
  for (int i = threadIdx.x; i < 2 * CELLS; i += THREADS) shared_memory<int>()[i] = 0;
  __syncthreads();
  const int used = (min(data.slab_columns, data.n_columns) + PIECE_BYTES - 1) / PIECE_BYTES;
  const int n_pieces = (end_slab - first_slab) * used;
  long long all = 0;
  for (int i = 0; i < n_openings; ++i) all += static_cast<long long>(strips[i]) * n_pieces;
  const int n_blocks = static_cast<int>(min(static_cast<long long>(gridDim.x), (all + LEAST_STRIPS - 1) / LEAST_STRIPS));
  if (static_cast<int>(blockIdx.x) < n_blocks) {
    long long at = all * blockIdx.x / n_blocks;
    const long long end = all * (blockIdx.x + 1) / n_blocks;
    long long before = 0;
    for (int i = 0; i < n_openings && at < end; ++i) {
      const long long own = static_cast<long long>(strips[i]) * n_pieces;
      while (at < before + own && at < end) {
        const int piece = static_cast<int>((at - before) / strips[i]);
        const int from = static_cast<int>(at - before - static_cast<long long>(piece) * strips[i]);
        const int to = static_cast<int>(min(static_cast<long long>(strips[i]), from + end - at));
        const int slab = first_slab + piece / used, part_of_slab = piece % used;
        const unsigned char* bytes = reinterpret_cast<const unsigned char*>(data.slabs[slab]);
        count_strips(bytes + part_of_slab * PIECE_BYTES, rows_of(space, buffers[i]), packed_of(space, buffers[i]),
                     starts[i], ends[i], from, to);
        __syncthreads();
        flush(min(data.slab_columns, data.n_columns - slab * data.slab_columns) - part_of_slab * PIECE_BYTES,
              histogram_of(data, space, space.openings[i].slot) + static_cast<size_t>(slab) * SLAB_CELLS +
                  part_of_slab * CELLS);
        __syncthreads();
        at += to - from;
      }
      before += own;
    }
  }
  end_stage<WAITS>(space.growth, [] {});
}

}  // namespace
