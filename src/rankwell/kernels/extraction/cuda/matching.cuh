// Features of how often terms occur: term frequencies, cosine, BM25, language models.

#include "hits.cuh"

namespace {

// Sum, smallest, largest, mean and variance of tf, of tf / length and of tf · idf.
__device__ void five_figures(const Task& task, double length) {
  const double m = task.n_terms;
  double total = 0.0, smallest = task.frequency(0), largest = smallest;
  double weighted = 0.0, smallest_weighted = smallest * task.idf(0), largest_weighted = smallest_weighted;
  for (int t = 0; t < task.n_terms; ++t) {
    const double tf = task.frequency(t), value = tf * task.idf(t);
    total += tf;
    smallest = fmin(smallest, tf);
    largest = fmax(largest, tf);
    weighted += value;
    smallest_weighted = fmin(smallest_weighted, value);
    largest_weighted = fmax(largest_weighted, value);
  }
  const double mean = total / m, mean_weighted = weighted / m;
  double variance = 0.0, variance_weighted = 0.0;
  for (int t = 0; t < task.n_terms; ++t) {
    const double tf = task.frequency(t), away = tf - mean, away_weighted = tf * task.idf(t) - mean_weighted;
    variance += away * away;
    variance_weighted += away_weighted * away_weighted;
  }
  const double of_tf[5] = {total, smallest, largest, mean, variance / m};
  const double of_tfidf[5] = {weighted, smallest_weighted, largest_weighted, mean_weighted, variance_weighted / m};
#pragma unroll
  for (int i = 0; i < 5; ++i) {
    task.put(TF_SUM + i, of_tf[i]);
    task.put(TFIDF_SUM + i, of_tfidf[i]);
    const double shrink = i < 4 ? length : length * length;
    task.put(NORMALISED_TF_SUM + i, length > 0.0 ? of_tf[i] / shrink : 0.0);
  }
}

// The number of matched terms, which is returned, the cosine, and BM25.
__device__ int matching(const Task& task) {
  const double k1 = task.parameters[K1], normaliser = task.normaliser();
  int covered = 0;
  double dot = 0.0, square = 0.0, bm25 = 0.0;
  for (int t = 0; t < task.n_terms; ++t) {
    const double tf = task.frequency(t), qtf = task.query_frequency(t), idf = task.idf(t);
    if (tf > 0.0) {
      ++covered;
      dot += qtf * idf * tf * idf;
      square += tf * idf * (tf * idf);
      bm25 += qtf * idf * (tf * (k1 + 1.0) / (tf + normaliser));
    }
  }
  task.put(COVERED_TERMS, covered);
  task.put(COVERED_RATIO, static_cast<double>(covered) / task.n_terms);
  task.put(BOOLEAN, covered == task.n_terms ? 1.0 : 0.0);
  task.put(VECTOR_SPACE, dot > 0.0 ? dot / sqrt(task.of_query(task.batch.squares) * square) : 0.0);
  task.put(BM25, bm25);
  return covered;
}

// The log of the query's probability under three models; an empty stream has the collection's.
__device__ void language_models(const Task& task, double length) {
  const double collection = task.of_query(task.batch.likelihood);
  double absolute = collection, dirichlet = collection, jelinek_mercer = collection;
  if (length > 0.0) {
    const double delta = task.parameters[DELTA], mu = task.parameters[MU], weight = task.parameters[LAMBDA];
    const double distinct = task.batch.distinct[task.candidate * (task.n_streams + 1) + task.stream];
    absolute = dirichlet = jelinek_mercer = 0.0;
    for (int t = 0; t < task.n_terms; ++t) {
      const double tf = task.frequency(t), qtf = task.query_frequency(t), p = task.of_term(task.batch.background, t);
      if (p > 0.0) {
        absolute += qtf * log((fmax(tf - delta, 0.0) + delta * distinct * p) / length);
        dirichlet += qtf * log((tf + mu * p) / (length + mu));
        jelinek_mercer += qtf * log((1.0 - weight) * tf / length + weight * p);
      }
    }
  }
  task.put(LM_ABSOLUTE, absolute);
  task.put(LM_DIRICHLET, dirichlet);
  task.put(LM_JELINEK_MERCER, jelinek_mercer);
}

// Normalised frequencies are summed over the streams before they saturate. parameters: k1, each b, each weight
__device__ double bm25f(const Batch& batch, int n_streams, long long query, long long candidate, long long first_cell,
                        const double* parameters) {
  const double k1 = parameters[0];
  const long long first = batch.term_ptr[query], end = batch.term_ptr[query + 1];
  double total = 0.0;
  for (long long term = first; term < end; ++term) {
    double frequency = 0.0;
    for (int s = 0; s < n_streams; ++s) {
      const long long cell = first_cell + (term - first) * n_streams + s;
      const double tf = batch.cell_ptr[cell + 1] - batch.cell_ptr[cell];
      if (tf > 0.0) {
        const double b = parameters[1 + s];
        const double relative_length = batch.lengths[candidate * n_streams + s] * batch.relative_length[s];
        frequency += parameters[1 + n_streams + s] * tf / (1.0 - b + b * relative_length);
      }
    }
    if (frequency > 0.0) {
      const double idf = batch.idf[term * (n_streams + 1) + n_streams];
      total += batch.query_frequency[term] * idf * (frequency * (k1 + 1.0) / (frequency + k1));
    }
  }
  return total;
}

}  // namespace
