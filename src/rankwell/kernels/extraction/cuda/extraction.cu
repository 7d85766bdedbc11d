// Feature extraction on the device: from hits to columns of float32 features.
//
// Vocabulary as in `features/hits.py`: a cell is one term in one stream of one candidate, and its width the term
// frequency (tf); in counts by stream, column n_streams is the whole document. One thread computes one stream
// of one candidate; a row of blocks computes one stream, so no warp mixes streams. Sums are float64 in the order of the
// CPU kernel and the module is compiled without fused products, so only the logarithms of language models can differ
// from the CPU's, in their last place.
//
// Element (i, d) of the features is at i * stride + d.

#include "matching.cuh"
#include "proximity.cuh"

namespace {

// All features of one stream of one candidate, or of its whole document: the task of a thread.
__device__ void extract_stream(const Task& task, const MergeState& merge) {
  const long long length = task.length();
  task.put(LENGTH, length);
  task.put(IDF, task.of_query(task.batch.idf_sum));
  int covered = 0;
  if (task.n_terms > 0) {
    five_figures(task, length);
    covered = matching(task);
    if (task.wants_any(LM_ABSOLUTE, N_WHOLE_KINDS)) language_models(task, length);
  } else {
    for (int kind = 0; kind < N_WHOLE_KINDS; ++kind) {
      if (kind != LENGTH && kind != IDF) task.put(kind, 0.0);
    }
  }
  if (task.is_whole() || !task.wants_any(N_WHOLE_KINDS, N_KINDS)) return;
  if (covered == 0) {
    for (int kind = N_WHOLE_KINDS; kind < N_KINDS; ++kind) task.put(kind, 0.0);
    return;
  }
  const int matched = matched_words(task);
  coverage_features(task, matched, length);
  window_features(task, matched, merge);
  if (task.wants_any(LONGEST_SEQUENCE, N_KINDS)) {
    sequence_features(task, length);
    pair_features(task);
  }
}

}  // namespace

// grid (candidates / block, streams + 2): one row of blocks per stream, one for the whole document, and one for
// BM25F and the statics. scratch_*: 3 and 1 elements per cell, or null if no query has more than FEW_TERMS terms.
extern "C" __global__ void extract_features(const char* packed, int n_streams, int n_statics, const int* column_of,
                                            const double* parameters, const int* static_column, const int* bm25f_column,
                                            const double* bm25f_parameters, unsigned* scratch_places,
                                            double* scratch_gathered, long long stride, float* features) {
  const Batch batch = open_batch(packed);
  const long long candidate = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (candidate >= batch.n_candidates) return;
  const int stream = blockIdx.y;
  const long long query = query_of(batch, candidate), first_term = batch.term_ptr[query];
  const int n_terms = static_cast<int>(batch.term_ptr[query + 1] - first_term);
  const long long first_cell = batch.cell_base[query] + (candidate - batch.query_ptr[query]) * n_terms * n_streams;
  if (stream > n_streams) {
    if (*bm25f_column >= 0) {
      features[*bm25f_column * stride + candidate] =
          narrow(bm25f(batch, n_streams, query, candidate, first_cell, bm25f_parameters));
    }
    for (int i = 0; i < n_statics; ++i) {
      if (static_column[i] >= 0) {
        features[static_column[i] * stride + candidate] = batch.statics[candidate * n_statics + i];
      }
    }
    return;
  }
  const Task task = {batch,
                     n_streams,
                     stream,
                     query,
                     candidate,
                     first_term,
                     first_cell,
                     n_terms,
                     word_terms(batch, query),
                     column_of + stream * N_KINDS,
                     parameters + stream * N_PARAMETERS,
                     features,
                     stride};
  unsigned cursor[FEW_TERMS], head[FEW_TERMS];
  int last[FEW_TERMS];
  double gathered[FEW_TERMS];
  MergeState merge = {cursor, head, last, gathered};
  if (n_terms > FEW_TERMS && stream < n_streams) {
    // The scratch of the candidate's cells is enough for each of its streams.
    const long long n_cells = batch.cell_base[batch.n_queries];
    const long long own = first_cell + static_cast<long long>(stream) * n_terms;
    merge = {scratch_places + own, scratch_places + n_cells + own,
             reinterpret_cast<int*>(scratch_places + 2 * n_cells + own), scratch_gathered + own};
  }
  extract_stream(task, merge);
}

// Values of expressions to features; those outside float32's range are missing. grid (documents / block, expressions)
extern "C" __global__ void store_expressions(const double* values, const long long* columns, long long n_docs,
                                             long long stride, float* features) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  const double value = values[blockIdx.y * stride + doc];
  features[columns[blockIdx.y] * stride + doc] = fabs(value) <= 3.4028234663852886e38 ? narrow(value) : nanf("");
}
