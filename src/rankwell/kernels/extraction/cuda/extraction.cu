// Feature extraction on the device: hits in, columns of float32 features out.
//
// Vocabulary as in `features/hits.py`: a cell is one candidate's one term in one stream, and its width the term
// frequency (tf); column n_streams of what is counted by stream is the whole document. One thread computes one stream of
// one candidate; a row of blocks computes one stream, so no warp mixes streams. Sums are float64 in the order of the CPU
// kernel and the module is compiled without fused products, so only the logarithms of language models can differ from
// the CPU's, in their last place.
//
// Element (i, d) of the features lies at i * stride + d.

namespace {

// Kinds, numbered as in `feature_rules.py`.
enum Kind {
  COVERED_TERMS, COVERED_RATIO, LENGTH, IDF, TF_SUM, TF_MIN, TF_MAX, TF_MEAN, TF_VARIANCE, NORMALISED_TF_SUM,
  NORMALISED_TF_MIN, NORMALISED_TF_MAX, NORMALISED_TF_MEAN, NORMALISED_TF_VARIANCE, TFIDF_SUM, TFIDF_MIN, TFIDF_MAX,
  TFIDF_MEAN, TFIDF_VARIANCE, BOOLEAN, VECTOR_SPACE, BM25, LM_ABSOLUTE, LM_DIRICHLET, LM_JELINEK_MERCER,
  QUERY_COMPLETENESS, FIELD_COMPLETENESS, FIRST_PLACE, LAST_PLACE, EARLINESS, WINDOW_ALL, WINDOW_MATCHED,
  WINDOW_DENSITY, WINDOW_ORDER, PAIR_DISTANCE, BM25_PROXIMITY, LONGEST_SEQUENCE, SEQUENCE_RATIO, PHRASE_COUNT,
  EXACT_MATCH, ORDERED_PAIRS, UNORDERED_PAIRS, FORWARD_DISTANCE, REVERSE_DISTANCE, FORWARD_PROXIMITY,
  REVERSE_PROXIMITY, N_KINDS
};
constexpr int N_WHOLE_KINDS = QUERY_COMPLETENESS;
enum Parameter { K1, B, MU, LAMBDA, DELTA, N_PARAMETERS };

constexpr int PAIR_WINDOW = 8;
constexpr int SEQUENCE_WORDS = 64;
constexpr int FEW_TERMS = 8;           // up to so many terms a thread keeps its state itself
constexpr unsigned NO_PLACE = ~0u;     // above every place

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
  return {header[0],
          header[1],
          array_at<long long>(packed, 2),
          array_at<long long>(packed, 3),
          array_at<long long>(packed, 4),
          array_at<long long>(packed, 5),
          array_at<int>(packed, 6),
          array_at<int>(packed, 7),
          array_at<int>(packed, 8),
          array_at<int>(packed, 9),
          array_at<int>(packed, 10),
          array_at<float>(packed, 11),
          array_at<unsigned>(packed, 12),
          array_at<int>(packed, 13),
          array_at<double>(packed, 14),
          array_at<double>(packed, 15),
          array_at<double>(packed, 16),
          array_at<double>(packed, 17),
          array_at<double>(packed, 18),
          array_at<double>(packed, 19),
          array_at<double>(packed, 20)};
}

// x rounded to float32. CuPy compiles with -ftz=true, under which the hardware's own conversion makes 0 of subnormals.
__device__ float narrow(double x) {
  if (!(fabs(x) < 0x1p-126)) return static_cast<float>(x);
  const unsigned bits = static_cast<unsigned>(rint(fabs(x) * 0x1p149));
  return __uint_as_float(signbit(x) ? bits | 0x80000000u : bits);
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

// How many terms are there, the cosine, and BM25; returns the matched terms.
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

// A thread's state in the merge of its terms' hits, one element a term.
struct MergeState {
  unsigned *cursor, *head;  // the next hit, and its place
  int* last;                // the last place that the merge has passed, -1 before the first
  double* gathered;         // what neighbouring hits lend the term
};

// Takes the next hit in the order of places, then of terms: its term, or -1 where there are no more.
__device__ int next_hit(const Task& task, const MergeState& merge, unsigned& place) {
  int term = -1;
  place = NO_PLACE;
  for (int t = 0; t < task.n_terms; ++t) {
    if (merge.head[t] < place) {
      place = merge.head[t];
      term = t;
    }
  }
  if (term >= 0) {
    const unsigned hit = ++merge.cursor[term];
    merge.head[term] = hit < task.end_hit(term) ? static_cast<unsigned>(task.batch.positions[hit]) : NO_PLACE;
  }
  return term;
}

// The number of places in the ascending positions[low:high] that are not above `place`.
__device__ unsigned count_up_to(const int* positions, unsigned low, unsigned high, long long place) {
  const unsigned start = low;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    if (positions[middle] <= place) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low - start;
}

// The share of neighbouring matched terms whose last places in a window that ends at `end` stand in the query's order.
__device__ double terms_in_order(const Task& task, int matched, long long end) {
  if (matched < 2) return matched;
  int in_order = 0, before = -1;
  for (int t = 0; t < task.n_terms; ++t) {
    const unsigned first = task.first_hit(t), count = count_up_to(task.batch.positions, first, task.end_hit(t), end);
    if (count == 0) continue;
    const int last = task.batch.positions[first + count - 1];
    in_order += before >= 0 && before < last;
    before = last;
  }
  return static_cast<double>(in_order) / (matched - 1);
}

// One pass over a stream's hits in the order of places: the smallest window that holds every matched term, and what
// neighbouring hits of different terms lend each other.
__device__ void window_features(const Task& task, int matched, const MergeState& merge) {
  for (int t = 0; t < task.n_terms; ++t) {
    const unsigned hit = task.first_hit(t);
    merge.cursor[t] = hit;
    merge.head[t] = hit < task.end_hit(t) ? static_cast<unsigned>(task.batch.positions[hit]) : NO_PLACE;
    merge.last[t] = -1;
    merge.gathered[t] = 0.0;
  }
  long long smallest = 1LL << 62, end = 0, nearest = 0;
  int seen = 0, term_before = -1;
  unsigned place = 0, place_before = 0;
  for (int term = next_hit(task, merge, place); term >= 0; term = next_hit(task, merge, place)) {
    if (term_before >= 0 && term_before != term) {
      const long long distance = max(1LL, static_cast<long long>(place) - place_before);
      nearest = nearest == 0 ? distance : min(nearest, distance);
      const double closeness = 1.0 / (static_cast<double>(distance) * static_cast<double>(distance));
      merge.gathered[term_before] += task.idf(term) * closeness;
      merge.gathered[term] += task.idf(term_before) * closeness;
    }
    seen += merge.last[term] < 0;
    merge.last[term] = static_cast<int>(place);
    if (seen == matched) {
      // The tightest window that ends here begins at the term that was seen longest ago.
      unsigned start = place;
      for (int t = 0; t < task.n_terms; ++t) {
        if (merge.last[t] >= 0) start = min(start, static_cast<unsigned>(merge.last[t]));
      }
      if (place - start < smallest) {
        smallest = place - start;
        end = place;
      }
    }
    term_before = term;
    place_before = place;
  }
  const double size = smallest + 1.0, k1 = task.parameters[K1], normaliser = task.normaliser();
  double total = 0.0;
  for (int t = 0; t < task.n_terms; ++t) {
    const double near = merge.gathered[t];
    if (near > 0.0) total += fmin(1.0, task.idf(t)) * near * (k1 + 1.0) / (near + normaliser);
  }
  task.put(WINDOW_MATCHED, size);
  task.put(WINDOW_ALL, matched == task.n_terms ? size : 0.0);
  task.put(WINDOW_DENSITY, fmin(1.0, matched / size));
  task.put(WINDOW_ORDER, terms_in_order(task, matched, end));
  task.put(PAIR_DISTANCE, nearest);
  task.put(BM25_PROXIMITY, total);
}

// How much of the query is here, and how much of the stream is the query; where the first and the last hit stand.
__device__ void coverage_features(const Task& task, int covered, long long length) {
  double importance = 0.0;
  int first = 0x7fffffff, last = 0;
  for (int t = 0; t < task.n_terms; ++t) {
    const unsigned begin = task.first_hit(t), end = task.end_hit(t);
    if (begin == end) continue;
    importance += task.query_frequency(t) * task.idf(t);
    first = min(first, task.batch.positions[begin]);
    last = max(last, task.batch.positions[end - 1]);
  }
  task.put(QUERY_COMPLETENESS, importance / task.of_query(task.batch.importance));
  task.put(FIELD_COMPLETENESS, length > 0 ? fmin(1.0, static_cast<double>(covered) / length) : 0.0);
  task.put(FIRST_PLACE, first + 1.0);
  task.put(LAST_PLACE, last + 1.0);
  task.put(EARLINESS, 1.0 - static_cast<double>(first) / static_cast<double>(max(length, last + 1LL)));
}

__device__ bool stands_at(const Task& task, int term, long long place) {
  const unsigned first = task.first_hit(term);
  const unsigned count = count_up_to(task.batch.positions, first, task.end_hit(term), place);
  return count > 0 && task.batch.positions[first + count - 1] == place;
}

// Runs of neighbouring query words that stand in the stream as they stand in the query: each is walked once, from its
// first word.
__device__ void sequence_features(const Task& task, long long length) {
  const long long first_word = task.batch.word_ptr[task.query];
  const long long all_words = task.batch.word_ptr[task.query + 1] - first_word;
  const int n_words = static_cast<int>(min(all_words, static_cast<long long>(SEQUENCE_WORDS)));
  const int *words = task.batch.words + first_word, *places = task.batch.word_places + first_word;
  long long longest = 0, phrases = 0, pairs = 0;
  for (int j = 0; j < n_words; ++j) {
    for (unsigned hit = task.first_hit(words[j]); hit < task.end_hit(words[j]); ++hit) {
      const long long begin = static_cast<long long>(task.batch.positions[hit]) - places[j];
      if (j > 0 && stands_at(task, words[j - 1], begin + places[j - 1])) continue;
      int stop = j + 1;
      while (stop < n_words && stands_at(task, words[stop], begin + places[stop])) ++stop;
      longest = max(longest, static_cast<long long>(stop - j));
      phrases += stop - j == all_words;
      pairs += stop - j - 1;
    }
  }
  task.put(LONGEST_SEQUENCE, longest);
  task.put(SEQUENCE_RATIO, n_words > 0 ? static_cast<double>(longest) / n_words : 0.0);
  task.put(PHRASE_COUNT, phrases);
  task.put(EXACT_MATCH, phrases > 0 && length == all_words ? 1.0 : 0.0);
  task.put(ORDERED_PAIRS, pairs);
}

// Of the hits of two terms: how often they are near, and the smallest distances to b after and before a.
struct PairDistances {
  long long near, forward, reverse;
};

__device__ PairDistances pair_distances(const Task& task, int term_a, int term_b) {
  const int* positions = task.batch.positions;
  const unsigned end_a = task.end_hit(term_a), first_b = task.first_hit(term_b), end_b = task.end_hit(term_b);
  PairDistances found = {0, 0, 0};
  unsigned low = first_b, after = first_b;
  for (unsigned hit = task.first_hit(term_a); hit < end_a; ++hit) {
    const long long place = positions[hit];
    while (low < end_b && positions[low] <= place - PAIR_WINDOW) ++low;
    while (after < end_b && positions[after] <= place) ++after;
    unsigned n_before = after - first_b;
    if (n_before > 0 && positions[first_b + n_before - 1] == place) --n_before;
    for (unsigned k = low; k < end_b && positions[k] < place + PAIR_WINDOW; ++k) found.near += positions[k] != place;
    if (after < end_b) {
      const long long distance = positions[after] - place;
      if (found.forward == 0 || distance < found.forward) found.forward = distance;
    }
    if (n_before > 0) {
      const long long distance = place - positions[first_b + n_before - 1];
      if (found.reverse == 0 || distance < found.reverse) found.reverse = distance;
    }
  }
  return found;
}

// Neighbouring words of the query that are different terms.
__device__ void pair_features(const Task& task) {
  const long long first_word = task.batch.word_ptr[task.query];
  const long long all_words = task.batch.word_ptr[task.query + 1] - first_word;
  const int n_words = static_cast<int>(min(all_words, static_cast<long long>(SEQUENCE_WORDS)));
  const int* words = task.batch.words + first_word;
  long long near = 0, forward = 0, reverse = 0;
  double forward_sum = 0.0, reverse_sum = 0.0;
  int n_pairs = 0;
  for (int j = 0; j + 1 < n_words; ++j) {
    if (words[j] == words[j + 1]) continue;
    ++n_pairs;
    const PairDistances here = pair_distances(task, words[j], words[j + 1]);
    near += here.near;
    if (here.forward > 0) {
      forward = forward == 0 ? here.forward : min(forward, here.forward);
      forward_sum += 1.0 / here.forward;
    }
    if (here.reverse > 0) {
      reverse = reverse == 0 ? here.reverse : min(reverse, here.reverse);
      reverse_sum += 1.0 / here.reverse;
    }
  }
  task.put(UNORDERED_PAIRS, near);
  task.put(FORWARD_DISTANCE, forward);
  task.put(REVERSE_DISTANCE, reverse);
  task.put(FORWARD_PROXIMITY, n_pairs > 0 ? forward_sum / n_pairs : 0.0);
  task.put(REVERSE_PROXIMITY, n_pairs > 0 ? reverse_sum / n_pairs : 0.0);
}

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
  coverage_features(task, covered, length);
  window_features(task, covered, merge);
  if (task.wants_any(LONGEST_SEQUENCE, N_KINDS)) {
    sequence_features(task, length);
    pair_features(task);
  }
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

// grid (candidates / block, streams + 2): a row of blocks for each stream, one for the whole document, and one for BM25F
// and the statics. scratch_*: 3 and 1 elements a cell, or null where no query has more than FEW_TERMS terms.
extern "C" __global__ void extract_features(const char* packed, int n_streams, int n_statics, const int* column_of,
                                            const double* parameters, const int* static_column,
                                            const int* bm25f_column, const double* bm25f_parameters,
                                            unsigned* scratch_places, double* scratch_gathered, long long stride,
                                            float* features) {
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
  const Task task = {batch,      n_streams,  stream,  query,
                     candidate,  first_term, first_cell, n_terms,
                     column_of + stream * N_KINDS, parameters + stream * N_PARAMETERS, features, stride};
  unsigned cursor[FEW_TERMS], head[FEW_TERMS];
  int last[FEW_TERMS];
  double gathered[FEW_TERMS];
  MergeState merge = {cursor, head, last, gathered};
  if (n_terms > FEW_TERMS && stream < n_streams) {
    // The candidate's cells have room for each of its streams.
    const long long n_cells = batch.cell_base[batch.n_queries];
    const long long own = first_cell + static_cast<long long>(stream) * n_terms;
    merge = {scratch_places + own, scratch_places + n_cells + own,
             reinterpret_cast<int*>(scratch_places + 2 * n_cells + own), scratch_gathered + own};
  }
  extract_stream(task, merge);
}

// Expressions' values become features; what float32 cannot hold is missing. grid (documents / block, expressions)
extern "C" __global__ void store_expressions(const double* values, const long long* columns, long long n_docs,
                                             long long stride, float* features) {
  const long long doc = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (doc >= n_docs) return;
  const double value = values[blockIdx.y * stride + doc];
  features[columns[blockIdx.y] * stride + doc] = fabs(value) <= 3.4028234663852886e38 ? narrow(value) : nanf("");
}
