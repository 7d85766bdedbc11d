// The best cut of both sides of every opening, from their histograms: see `rules.py`. Nothing is fused.

#include "stages.cuh"
#include "histograms.cuh"

namespace {

// Warps that search the columns of a word, which are neighbours in memory, at the same time.
constexpr int WORD_WARPS = WARPS < WORD ? WARPS : WORD;
// Codes of a lane, one after another, if there are more than lanes. A column's sums have a gap after so many of them:
// the lanes then read different banks.
constexpr int LANE_CODES = COLUMN_VALUES / 32;
constexpr int COLUMN_ROOM = COLUMN_VALUES + COLUMN_VALUES / LANE_CODES + 2;

__device__ __forceinline__ int room_of(int value) { return value + value / LANE_CODES; }

struct Bound {
  double gradient, hessian, l1, l2, least, objective, min_gain;
  long long total;
};

__device__ __forceinline__ double shrunk_square(double gradient, double l1) {
  const double size = __dsub_rn(fabs(gradient), l1);
  return size > 0.0 ? __dmul_rn(size, size) : 0.0;
}

__device__ __forceinline__ Bound bound_of(const Settings& settings, const Growth& growth, long long total, int n_docs) {
  Bound bound;
  bound.gradient = gradient_of(total);
  bound.hessian = hessian_of(total);
  bound.l1 = growth.l1;
  bound.l2 = growth.l2;
  bound.min_gain = growth.min_gain;
  bound.total = total;
  const double below = __dadd_rn(bound.hessian, bound.l2);
  bound.objective = below > 0.0 ? __ddiv_rn(shrunk_square(bound.gradient, bound.l1), below) : 0.0;
  const long long twice = 2 * static_cast<long long>(max(n_docs, 1));
  const long long docs = 2 * static_cast<long long>(settings.min_docs_leaf) - 1;
  const long long by_docs = (hessian_of(total) * docs + twice - 1) / twice;
  bound.least = max(max(by_docs, growth.least_hessian), 1ll);
  return bound;
}

// 0 if the cut with this left side is not allowed.
__device__ __forceinline__ double cut_gain(const Bound& bound, long long left) {
  const double g1 = gradient_of(left), h1 = hessian_of(left);
  const double g2 = __dsub_rn(bound.gradient, g1), h2 = __dsub_rn(bound.hessian, h1);
  if (h1 < bound.least || h2 < bound.least) return 0.0;
  const double a = __dadd_rn(h1, bound.l2), b = __dadd_rn(h2, bound.l2);
  const double top = __dadd_rn(__dmul_rn(shrunk_square(g1, bound.l1), b), __dmul_rn(shrunk_square(g2, bound.l1), a));
  return __dsub_rn(__ddiv_rn(top, __dmul_rn(a, b)), bound.objective);
}

struct Candidate {
  double gain;
  long long left;
  int order;  // code, and COLUMN_VALUES more if missing values go right: of equal gains the lowest is taken
};

__device__ __forceinline__ void take_better(Candidate& best, double gain, long long left, int order) {
  if (gain > best.gain || (gain == best.gain && order < best.order)) {
    best.gain = gain;
    best.left = left;
    best.order = order;
  }
}

// The packed sum of code `lane` if there are fewer than 32 codes, in a column that several features share: lanes take a
// part of the values each.
__device__ __forceinline__ long long shared_sum(const long long* column, int divisor, int n_codes, int size) {
  int width = 2;
  while (width < n_codes) width *= 2;
  const int code = lane_of() & (width - 1), n_values = size / n_codes;
  long long sum = 0;
  if (code < n_codes) {
    for (int i = lane_of() / width; i < n_values; i += 32 / width) {
      const int value = (i / divisor * n_codes + code) * divisor + i % divisor;
      sum += column[room_of(value)];
    }
  }
  for (int apart = width; apart < 32; apart *= 2) sum += __shfl_xor_sync(WHOLE_WARP, sum, apart);
  return lane_of() < n_codes ? sum : 0;
}

__device__ __forceinline__ long long sum_of_code(const long long* column, int divisor, int n_codes, int size,
                                                 int code) {
  if (code >= n_codes) return 0;
  if (size == n_codes) return column[room_of(code)];
  long long sum = 0;
  for (int first = code * divisor; first < size; first += n_codes * divisor) {
    for (int value = first; value < first + divisor; ++value) sum += column[room_of(value)];
  }
  return sum;
}

// The best cut by one feature, found by a warp; OWN codes a lane. own : their packed sums
template <int OWN>
__device__ __forceinline__ Candidate best_cut(const Bound& bound, int n_codes, bool may_miss,
                                              const long long (&own)[OWN], bool& has_missing) {
  long long running = 0;
#pragma unroll
  for (int i = 0; i < OWN; ++i) running += own[i];
  const long long all_own = running;
  for (int apart = 1; apart < 32; apart *= 2) {
    const long long other = __shfl_up_sync(WHOLE_WARP, running, apart);
    if (lane_of() >= apart) running += other;
  }
  running -= all_own;
  const long long missing = may_miss ? __shfl_sync(WHOLE_WARP, own[0], 0) : 0;
  Candidate best = {0.0, 0, 2 * COLUMN_VALUES};
#pragma unroll
  for (int i = 0; i < OWN; ++i) {
    const int code = lane_of() * OWN + i;
    running += own[i];
    if (code < n_codes - 1) {
      take_better(best, cut_gain(bound, running), running, code);
      if (missing != 0) {
        take_better(best, cut_gain(bound, running - missing), running - missing, COLUMN_VALUES + code);
      }
    }
  }
  for (int apart = 16; apart > 0; apart /= 2) {
    const double gain = __shfl_xor_sync(WHOLE_WARP, best.gain, apart);
    const long long left = __shfl_xor_sync(WHOLE_WARP, best.left, apart);
    const int order = __shfl_xor_sync(WHOLE_WARP, best.order, apart);
    take_better(best, gain, left, order);
  }
  has_missing = missing != 0;
  return best;
}

// The same; sums : of its column, in shared memory
__device__ __forceinline__ Candidate best_cut_of(const Bound& bound, const int* feature, int size,
                                                 const long long* sums, bool& has_missing) {
  const int n_codes = feature[N_CODES], divisor = feature[DIVISOR];
  const bool may_miss = feature[HAS_MISSING] != 0;
  if (n_codes <= 32) {
    const bool is_shared = size != n_codes && n_codes < 32;
    const long long own[1] = {is_shared ? shared_sum(sums, divisor, n_codes, size)
                                        : sum_of_code(sums, divisor, n_codes, size, lane_of())};
    return best_cut(bound, n_codes, may_miss, own, has_missing);
  }
  long long own[LANE_CODES];
#pragma unroll
  for (int i = 0; i < LANE_CODES; ++i) own[i] = sum_of_code(sums, divisor, n_codes, size, lane_of() * LANE_CODES + i);
  return best_cut(bound, n_codes, may_miss, own, has_missing);
}

__device__ __forceinline__ bool is_better(double gain, int feature, const Found& than) {
  return gain > than.gain || (gain == than.gain && gain > 0.0 && feature < than.feature);
}

// The best cut of a side by the features of a column, found by a warp; lane 0 knows where missing values go.
__device__ __forceinline__ Found best_of_column(const Data& data, const Bound& bound, int column,
                                                const long long* sums) {
  Found best = {};
  for (int place = data.column_ptr[column]; place < data.column_ptr[column + 1]; ++place) {
    const int feature = data.features[place];
    if (data.allowed[feature] == 0) continue;
    bool has_missing;
    const Candidate found =
        best_cut_of(bound, data.by_feature + feature * FEATURE_INTEGERS, data.sizes[column], sums, has_missing);
    if (!(found.gain > bound.min_gain) || !is_better(found.gain, feature, best)) continue;
    best.gain = found.gain;
    best.left_total = found.left;
    best.feature = feature;
    best.code = found.order % COLUMN_VALUES;
    best.missing_left = has_missing ? found.order < COLUMN_VALUES
                                    : 2 * static_cast<long long>(hessian_of(found.left)) >= hessian_of(bound.total);
  }
  return best;
}

// A side of an opening, of which cuts are searched: the smaller one first.
struct Side {
  long long total;
  int n_docs, number;
  bool is_deepest;
};

__device__ __forceinline__ Side side_of(const Data& data, const Settings& settings, const Opening& opening,
                                        const Part& part, bool is_smaller) {
  const bool is_root = opening.part < 0;
  const int n_left = left_documents(data, opening);
  const bool is_left = is_smaller == is_left_smaller(opening, part, n_left);
  const long long left_total = is_root ? part.total : part.left_total;
  Side side;
  side.total = is_left ? left_total : part.total - left_total;
  side.n_docs = is_left ? n_left : documents_of(part) - n_left;
  side.number = is_left ? 0 : 1;
  side.is_deepest = settings.max_depth > 0 && !is_root && part.depth + 1 >= settings.max_depth;
  return side;
}

// Read the histograms of a word's columns to shared memory. Those of the smaller side were counted; the larger side's
// are the part's without them, and take the place of the part's.
__device__ __forceinline__ void load_word(const Data& data, const Space& space, const Opening& opening,
                                          const Part& part, bool is_smaller, int word, long long* sums) {
  constexpr int TEAM_THREADS = 32 * WORD_WARPS;
  const int column = word * WORD, slab = column / data.slab_columns, in_slab = column % data.slab_columns;
  const size_t base =
      static_cast<size_t>(slab) * SLAB_CELLS + in_slab / GROUP_COLUMNS * GROUP_CELLS + in_slab % GROUP_COLUMNS;
  const long long* counted = histogram_of(data, space, opening.slot) + base;
  long long* whole = histogram_of(data, space, part.slot) + base;
#pragma unroll
  for (int i = threadIdx.x % TEAM_THREADS; i < COLUMN_VALUES * WORD; i += TEAM_THREADS) {
    const int value = i / WORD, place = value * GROUP_COLUMNS + i % WORD;
    long long sum = counted[place];
    if (!is_smaller) sum = whole[place] -= sum;
    sums[i % WORD * COLUMN_ROOM + room_of(value)] = sum;
  }
}

// The best cuts of the sides of all openings. A team of warps takes the columns of a word at a time, a warp a column.
__device__ __noinline__ void search_columns(const Data& data, const Settings& settings, const Space& space) {
  constexpr int TEAMS = WARPS / WORD_WARPS;
  const int n_words = (data.n_columns + WORD - 1) / WORD, n_items = space.growth->n_openings * n_words;
  const int team = warp_of() / WORD_WARPS, n_turns = space.openings[0].part < 0 ? 1 : 2;
  long long* sums = shared_memory<long long>() + team * WORD * COLUMN_ROOM;
  for (int first = 0; first < n_items; first += TEAMS * gridDim.x) {
    const int item = first + team * gridDim.x + blockIdx.x, number = min(item, n_items - 1) / n_words;
    const int word = item % n_words;
    const Opening opening = space.openings[number];
    const Part part = space.parts[max(opening.part, 0)];
    for (int turn = 0; turn < n_turns; ++turn) {
      __syncthreads();
      if (item < n_items) load_word(data, space, opening, part, turn == 0, word, sums);
      __syncthreads();
      if (item >= n_items) continue;
      const Side side = side_of(data, settings, opening, part, turn == 0);
      const Bound bound = bound_of(settings, *space.growth, side.total, side.n_docs);
      for (int i = warp_of() % WORD_WARPS; i < min(WORD, data.n_columns - word * WORD); i += WORD_WARPS) {
        const int column = word * WORD + i;
        Found best = {};
        if (!side.is_deepest) best = best_of_column(data, bound, column, sums + i * COLUMN_ROOM);
        const size_t place = static_cast<size_t>(number) * 2 + side.number;
        if (lane_of() == 0) space.found[place * data.n_columns + column] = best;
      }
    }
  }
}

}  // namespace
