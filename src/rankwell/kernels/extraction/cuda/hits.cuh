// A batch of hits, and one stream of one candidate of it: what features are made of, and where they go.

#include "declarations.h"  // made by kernels/extraction/declarations.py
#include "float32.cuh"

namespace {

// A batch of hits as `launches.py` packs it: the numbers, then where each array begins, in bytes.
struct Batch {
  long long n_candidates, n_queries;
  const long long *query_ptr, *term_ptr, *word_ptr, *cell_base;
  const int *query_frequency, *words, *word_places, *lengths, *distinct;
  const float* statics;
  const unsigned* cell_ptr;
  const int* positions;
  const double *idf, *background, *idf_sum, *squares, *importance, *likelihood, *relative_length;
};

template <class Element>
__device__ const Element* array_at(const char* packed, int number) {
  return reinterpret_cast<const Element*>(packed + reinterpret_cast<const long long*>(packed)[number]);
}

__device__ Batch open_batch(const char* packed) {
  const long long* header = reinterpret_cast<const long long*>(packed);
  return {header[N_CANDIDATES],
          header[N_QUERIES],
          array_at<long long>(packed, AT_QUERY_PTR),
          array_at<long long>(packed, AT_TERM_PTR),
          array_at<long long>(packed, AT_WORD_PTR),
          array_at<long long>(packed, AT_CELL_BASE),
          array_at<int>(packed, AT_QUERY_FREQUENCY),
          array_at<int>(packed, AT_WORDS),
          array_at<int>(packed, AT_WORD_PLACES),
          array_at<int>(packed, AT_LENGTHS),
          array_at<int>(packed, AT_DISTINCT),
          array_at<float>(packed, AT_STATICS),
          array_at<unsigned>(packed, AT_CELL_PTR),
          array_at<int>(packed, AT_POSITIONS),
          array_at<double>(packed, AT_IDF),
          array_at<double>(packed, AT_BACKGROUND),
          array_at<double>(packed, AT_IDF_SUM),
          array_at<double>(packed, AT_SQUARES),
          array_at<double>(packed, AT_IMPORTANCE),
          array_at<double>(packed, AT_LIKELIHOOD),
          array_at<double>(packed, AT_RELATIVE_LENGTH)};
}

// One stream (or the whole document) of one candidate: what its features are made of, and where they go.
struct Task {
  Batch batch;
  int n_streams, stream;
  long long query, candidate, first_term, first_cell;
  int n_terms;
  const int* column_of;
  const double* parameters;
  float* features;
  long long stride;

  __device__ bool is_whole() const { return stream == n_streams; }

  __device__ void put(int kind, double value) const {
    const int column = column_of[kind];
    if (column >= 0) features[column * stride + candidate] = narrow(value);
  }

  __device__ bool wants_any(int start, int stop) const {
    for (int kind = start; kind < stop; ++kind) {
      if (column_of[kind] >= 0) return true;
    }
    return false;
  }

  __device__ long long cell(int term) const { return first_cell + static_cast<long long>(term) * n_streams + stream; }
  __device__ unsigned first_hit(int term) const { return batch.cell_ptr[cell(term)]; }
  __device__ unsigned end_hit(int term) const { return batch.cell_ptr[cell(term) + 1]; }

  __device__ double frequency(int term) const {
    if (!is_whole()) return end_hit(term) - first_hit(term);
    const long long first = first_cell + static_cast<long long>(term) * n_streams;
    return batch.cell_ptr[first + n_streams] - batch.cell_ptr[first];
  }

  __device__ long long length() const {
    if (!is_whole()) return batch.lengths[candidate * n_streams + stream];
    long long total = 0;
    for (int s = 0; s < n_streams; ++s) total += batch.lengths[candidate * n_streams + s];
    return total;
  }

  __device__ double of_term(const double* values, int term) const {
    return values[(first_term + term) * (n_streams + 1) + stream];
  }
  __device__ double of_query(const double* values) const { return values[query * (n_streams + 1) + stream]; }
  __device__ double query_frequency(int term) const { return batch.query_frequency[first_term + term]; }
  __device__ double idf(int term) const { return of_term(batch.idf, term); }

  // BM25's k1 · (1 − b + b · length / mean length).
  __device__ double normaliser() const {
    const double relative_length = length() * batch.relative_length[stream];
    return parameters[K1] * (1.0 - parameters[B] + parameters[B] * relative_length);
  }
};

// The last query that begins at or before the candidate and has one.
__device__ long long query_of(const Batch& batch, long long candidate) {
  long long low = 0, high = batch.n_queries;
  while (high - low > 1) {
    const long long middle = (low + high) >> 1;
    if (batch.query_ptr[middle] <= candidate) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace
