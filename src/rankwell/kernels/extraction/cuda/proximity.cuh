// Features of where terms occur: windows, coverage, sequences, pairs. Places are those of words, not of phrases.

#include "hits.cuh"

namespace {

constexpr unsigned NO_PLACE = ~0u;  // above every place

// A thread's state in the merge of its terms' hits, one element per term.
struct MergeState {
  unsigned *cursor, *head;  // the next hit, and its place
  int* last;                // the last place that the merge has passed, -1 before the first
  double* gathered;         // the term's proximity weight from neighbouring hits
};

// How many of the words have a hit.
__device__ int matched_words(const Task& task) {
  int matched = 0;
  for (int t = 0; t < task.n_words; ++t) matched += task.first_hit(t) < task.end_hit(t);
  return matched;
}

// Takes the next hit in the order of places, then of terms: its term, or -1 if there are no more.
__device__ int next_hit(const Task& task, const MergeState& merge, unsigned& place) {
  int term = -1;
  place = NO_PLACE;
  for (int t = 0; t < task.n_words; ++t) {
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

// The share of neighbouring matched terms whose last places in a window that ends at `end` are in the query's order.
__device__ double terms_in_order(const Task& task, int matched, long long end) {
  if (matched < 2) return matched;
  int in_order = 0, before = -1;
  for (int t = 0; t < task.n_words; ++t) {
    const unsigned first = task.first_hit(t), count = count_up_to(task.batch.positions, first, task.end_hit(t), end);
    if (count == 0) continue;
    const int last = task.batch.positions[first + count - 1];
    in_order += before >= 0 && before < last;
    before = last;
  }
  return static_cast<double>(in_order) / (matched - 1);
}

// One pass over a stream's hits in the order of places: the smallest window that contains every matched term, and
// the proximity weights from neighbouring hits of different terms.
__device__ void window_features(const Task& task, int matched, const MergeState& merge) {
  for (int t = 0; t < task.n_words; ++t) {
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
      // The smallest window that ends here begins at the least recent term.
      unsigned start = place;
      for (int t = 0; t < task.n_words; ++t) {
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
  for (int t = 0; t < task.n_words; ++t) {
    const double near = merge.gathered[t];
    if (near > 0.0) total += fmin(1.0, task.idf(t)) * near * (k1 + 1.0) / (near + normaliser);
  }
  task.put(WINDOW_MATCHED, size);
  task.put(WINDOW_ALL, matched == task.n_words ? size : 0.0);
  task.put(WINDOW_DENSITY, fmin(1.0, matched / size));
  task.put(WINDOW_ORDER, terms_in_order(task, matched, end));
  task.put(PAIR_DISTANCE, nearest);
  task.put(BM25_PROXIMITY, total);
}

// How much of the query is here, and how much of the stream is the query; the places of the first and the last hit.
__device__ void coverage_features(const Task& task, int matched, long long length) {
  double importance = 0.0;
  int first = 0x7fffffff, last = 0;
  for (int t = 0; t < task.n_terms; ++t) {
    const unsigned begin = task.first_hit(t), end = task.end_hit(t);
    if (begin == end) continue;
    importance += task.query_frequency(t) * task.idf(t);
    if (t >= task.n_words) continue;
    first = min(first, task.batch.positions[begin]);
    last = max(last, task.batch.positions[end - 1]);
  }
  task.put(QUERY_COMPLETENESS, importance / task.of_query(task.batch.importance));
  task.put(FIELD_COMPLETENESS, length > 0 ? fmin(1.0, static_cast<double>(matched) / length) : 0.0);
  task.put(FIRST_PLACE, first + 1.0);
  task.put(LAST_PLACE, last + 1.0);
  task.put(EARLINESS, 1.0 - static_cast<double>(first) / static_cast<double>(max(length, last + 1LL)));
}

__device__ bool stands_at(const Task& task, int term, long long place) {
  const unsigned first = task.first_hit(term);
  const unsigned count = count_up_to(task.batch.positions, first, task.end_hit(term), place);
  return count > 0 && task.batch.positions[first + count - 1] == place;
}

// Runs of neighbouring query words that occur in the stream as in the query: each is followed once, from its
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

}  // namespace
