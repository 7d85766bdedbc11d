// RankSVM: the documents of every query in ascending order of score, all queries in one launch.
//
// One block sorts one query at a time, by score and then by row, so that the order is the same in every run. Up to
// CAPACITY documents are sorted by a bitonic network in shared memory. A longer query is sorted in pieces of that size,
// which are then merged in global memory, each thread finding its part of the output by bisection (merge path).

#ifndef CAPACITY
#define CAPACITY 2048
#endif

namespace {

__device__ bool comes_before(double score, int row, double other_score, int other_row) {
  return score < other_score || (score == other_score && row < other_row);
}

// Sort `size` (a power of two) entries in shared memory.
__device__ void sort_in_shared(double* scores, int* rows, int size) {
  for (int width = 2; width <= size; width *= 2) {
    for (int distance = width / 2; distance > 0; distance /= 2) {
      for (int k = threadIdx.x; k < size / 2; k += blockDim.x) {
        const int low = 2 * k - (k & (distance - 1)), high = low + distance;
        const bool ascending = (low & width) == 0;
        const bool swapped = comes_before(scores[high], rows[high], scores[low], rows[low]);
        if (swapped == ascending) {
          const double score = scores[low];
          const int row = rows[low];
          scores[low] = scores[high];
          rows[low] = rows[high];
          scores[high] = score;
          rows[high] = row;
        }
      }
      __syncthreads();
    }
  }
}

// How many of the first `rank` entries of the merged runs come from the run a of n_a entries.
__device__ int merge_path(const double* a, const int* a_rows, int n_a, const double* b, const int* b_rows, int n_b,
                          int rank) {
  int low = max(0, rank - n_b), high = min(rank, n_a);
  while (low < high) {
    const int middle = (low + high) / 2, other = rank - middle - 1;
    if (comes_before(a[middle], a_rows[middle], b[other], b_rows[other]))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Merge neighbouring runs of `width` entries from one half of the scratch memory into the other.
__device__ void merge_runs(const double* scores, const int* rows, int n, int width, double* merged, int* merged_rows) {
  const int items = 16;
  for (int first = threadIdx.x * items; first < n; first += blockDim.x * items) {
    const int start = first / (2 * width) * (2 * width);
    const int n_a = min(width, n - start), n_b = min(width, n - start - n_a);
    const double *a = scores + start, *b = a + n_a;
    const int *a_rows = rows + start, *b_rows = a_rows + n_a;
    int i = merge_path(a, a_rows, n_a, b, b_rows, n_b, first - start);
    int j = first - start - i;
    // A run is a multiple of `items` long: the part of one thread never reaches into the next pair of runs.
    for (int k = first; k < min(n, first + items); ++k) {
      const bool from_a = j >= n_b || (i < n_a && comes_before(a[i], a_rows[i], b[j], b_rows[j]));
      merged[k] = from_a ? a[i] : b[j];
      merged_rows[k] = from_a ? a_rows[i++] : b_rows[j++];
    }
  }
}

}  // namespace

extern "C" __global__ void sort_queries(
    const double* __restrict__ products,        // n_docs
    const long long* __restrict__ query_ptr,    // n_queries + 1
    const int* __restrict__ n_levels,           // n_queries; queries with one level need no order
    const long long* __restrict__ scratch_ptr,  // n_queries: 9 n + 6 doubles for a query longer than CAPACITY
    int n_queries, double* scratch,
    int* order) {  // n_docs, out: the row at each place, from the query's first
  __shared__ double scores[CAPACITY];
  __shared__ int rows[CAPACITY];
  for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
    if (n_levels[query] < 2) continue;
    const long long start = query_ptr[query];
    const int n = static_cast<int>(query_ptr[query + 1] - start);
    double* from = n > CAPACITY ? scratch + scratch_ptr[query] : nullptr;
    double* to = from + n;
    int* from_rows = reinterpret_cast<int*>(from + 2 * n);
    int* to_rows = from_rows + n;
    for (int piece = 0; piece < n; piece += CAPACITY) {
      const int length = min(CAPACITY, n - piece);
      int size = 1;
      while (size < length) size *= 2;
      for (int k = threadIdx.x; k < size; k += blockDim.x) {
        // The padding to a power of two comes last: also after infinity, by its row. NaN counts as infinity.
        const double infinity = __longlong_as_double(0x7ff0000000000000ll);
        const double score = k < length ? products[start + piece + k] : infinity;
        scores[k] = score == score ? score : infinity;
        rows[k] = k < length ? piece + k : 0x7fffffff;
      }
      __syncthreads();
      sort_in_shared(scores, rows, size);
      for (int k = threadIdx.x; k < length; k += blockDim.x) {
        if (n > CAPACITY) {
          from[piece + k] = scores[k];
          from_rows[piece + k] = rows[k];
        } else {
          order[start + k] = rows[k];
        }
      }
      __syncthreads();
    }
    if (n <= CAPACITY) continue;
    for (int width = CAPACITY; width < n; width *= 2) {
      merge_runs(from, from_rows, n, width, to, to_rows);
      __syncthreads();
      double* other = from;
      from = to;
      to = other;
      int* other_rows = from_rows;
      from_rows = to_rows;
      to_rows = other_rows;
    }
    for (int k = threadIdx.x; k < n; k += blockDim.x) order[start + k] = from_rows[k];
    __syncthreads();
  }
}
