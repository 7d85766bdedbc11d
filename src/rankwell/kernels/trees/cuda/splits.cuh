// The best cut of both sides of every opening, from their histograms: see `rules.py`. Nothing is fused.

#include "category_splits.cuh"
#include "feature_rules.cuh"
#include "gains.cuh"
#include "random_numbers.cuh"
#include "stages.cuh"
#include "histograms.cuh"

namespace {

// A team of warps searches the columns of a word, which are neighbours in memory, of both sides at the same time.
constexpr int TEAM_WARPS = WARPS < 2 * WORD ? WARPS : 2 * WORD;
constexpr int TEAM_THREADS = 32 * TEAM_WARPS;
constexpr int TEAMS = WARPS / TEAM_WARPS;

__device__ __forceinline__ int words_of(const Data& data) { return (data.n_columns + WORD - 1) / WORD; }

// Call `each` with every cut by a feature: its code, the packed sum of the codes up to it, and that of the missing
// values. By a warp. Loops are not unrolled: the multiprocessor must fetch all that a step executes in every step, and
// this would be half of it. Returns the packed sum of the missing values. sums : of its column, in shared memory
template <class Each>
__device__ __forceinline__ long long for_cuts(const Cuttable& feature, int size, const long long* sums, Each each) {
  const auto sum_of = sums_of_codes(feature, size, sums);
  const int n_own = feature.n_codes <= 32 ? 1 : LANE_CODES, first = lane_of() * n_own;
  long long sum_of_first = 0, all_own = 0;
#pragma unroll 1
  for (int i = 0; i < n_own; ++i) {
    const long long sum = sum_of(first + i);
    if (i == 0) sum_of_first = sum;
    all_own += sum;
  }
  const long long missing = feature.may_miss ? __shfl_sync(WHOLE_WARP, sum_of_first, 0) : 0;
  long long running = running_sum(all_own) - all_own;
#pragma unroll 1
  for (int code = first; code < min(first + n_own, feature.n_codes - 1); ++code) {
    running += sum_of(code);
    each(code, running, missing);
  }
  return missing;
}

// The best cut by one feature, found by a warp. sums : of its column, in shared memory
__device__ __forceinline__ Candidate best_cut_of(const Bound& bound, const Cuttable& feature, int size,
                                                 const long long* sums, bool& has_missing) {
  Candidate best = no_candidate();
  has_missing = for_cuts(feature, size, sums, [&](int code, long long running, long long missing) {
                  const int end = missing != 0 ? 2 * COLUMN_VALUES : COLUMN_VALUES;
#pragma unroll 1
                  for (int order = code; order < end; order += COLUMN_VALUES) {
                    const long long left = order < COLUMN_VALUES ? running : running - missing;
                    take_better(best, cut_gain(bound, left, feature.direction), left, order);
                  }
                }) != 0;
  return best_of_lanes(best);
}

// Of several cuts, the gain and feature of the best one, and which it is.
struct Leading {
  double gain;
  int feature, which;
};

__device__ __forceinline__ void take_leading(Leading& best, const Leading& other) {
  if (other.gain > best.gain || (other.gain == best.gain && other.gain > 0.0 && other.feature < best.feature)) {
    best = other;
  }
}

// That of `width` neighbouring lanes.
__device__ __forceinline__ Leading leading_of_lanes(Leading best, int width) {
#pragma unroll 1
  for (int apart = width / 2; apart > 0; apart /= 2) {
    Leading other;
    other.gain = __shfl_xor_sync(WHOLE_WARP, best.gain, apart);
    other.feature = __shfl_xor_sync(WHOLE_WARP, best.feature, apart);
    other.which = __shfl_xor_sync(WHOLE_WARP, best.which, apart);
    take_leading(best, other);
  }
  return best;
}

// A side of an opening, of which cuts are searched.
struct Side {
  long long total, draw;  // draw : its number over all trees, see `sampling.py`
  int n_docs, number;     // number : 0 if it is the left one, or the root
  int part;               // that it becomes
  bool is_deepest;
};

__device__ __forceinline__ Side side_of(const Data& data, const Settings& settings, const Space& space,
                                        const Opening& opening, const Part& part, bool is_smaller) {
  const bool is_root = opening.part < 0;
  const int n_left = left_documents(data, opening);
  const bool is_left = is_smaller == is_left_smaller(opening, part, n_left);
  const long long left_total = is_root ? part.total : part.left_total;
  Side side;
  side.total = is_left ? left_total : part.total - left_total;
  side.n_docs = is_left ? n_left : documents_of(part) - n_left;
  side.number = is_left ? 0 : 1;
  side.part = opening.left + side.number;
  side.draw = settings.first_draw + (is_root ? 0 : 2 * space.growth->n_leaves + side.number);
  side.is_deepest = settings.max_depth > 0 && !is_root && part.depth + 1 >= settings.max_depth;
  return side;
}

__device__ __forceinline__ Cuttable cuttable_at(const Data& data, const Settings& settings, const Side& side,
                                                int place) {
  const int number = data.features[place];
  const int* feature = data.by_feature + number * FEATURE_INTEGERS;
  const bool is_drawn =
      settings.node_features >= 1.0 || random_unit(settings.node_seed, side.draw, number) < settings.node_features;
  Cuttable cuttable;
  cuttable.number = number;
  cuttable.divisor = feature[DIVISOR];
  cuttable.n_codes = feature[N_CODES];
  cuttable.direction = direction_of(data, number);
  cuttable.n_set_codes = set_codes_of(data, number);
  cuttable.may_miss = feature[HAS_MISSING] != 0;
  cuttable.is_allowed = data.allowed[number] != 0 && is_drawn;
  return cuttable;
}

// The best cut of a side by the features of a column, found by a warp; lane 0 knows where missing values go. The warp
// asks for what it needs before it meets the others, who read the histograms meanwhile. set : written if there is one
template <class Meet>
__device__ __forceinline__ Found best_of_column(const Data& data, const Settings& settings, const Space& space,
                                                const Side& side, int column, const long long* sums, CodeSet& set,
                                                Meet meet) {
  Found best = {};
  const bool is_searched = column < data.n_columns && !side.is_deepest;
  const int there = min(column, data.n_columns - 1), size = data.sizes[there];
  const int first = data.column_ptr[there], last = data.column_ptr[there + 1];
  const Bound bound = bound_of(*space.growth, side.total, side.n_docs, bounds_of(space, side.part));
  Cuttable next = cuttable_at(data, settings, side, first);
  meet();
  for (int place = first; is_searched && place < last; ++place) {
    const Cuttable feature = next;
    if (place + 1 < last) next = cuttable_at(data, settings, side, place + 1);
    if (!feature.is_allowed || !may_interact(data, space, side.part, feature.number)) continue;
    bool has_missing = false;
    Candidate found;
    CodeSet own_set;
    const bool has_set = CATEGORICAL && feature.n_set_codes > 0;
    if (has_set) {
      found = best_set_of(settings, *space.growth, bound, side.n_docs, feature, size, sums, own_set);
    } else {
      found = best_cut_of(bound, feature, size, sums, has_missing);
    }
    const bool is_better = found.gain > best.gain || (found.gain == best.gain && feature.number < best.feature);
    if (!(found.gain > bound.min_gain) || !is_better) continue;
    best.gain = found.gain;
    best.left_total = found.left;
    best.feature = feature.number;
    best.code = has_set ? -1 : found.order % COLUMN_VALUES;
    if (has_set) {
      set = own_set;
      best.missing_left = feature.may_miss && has_code(set.words, 0);
    } else {
      best.missing_left = has_missing ? found.order < COLUMN_VALUES
                                      : 2 * static_cast<long long>(hessian_of(found.left)) >= hessian_of(bound.total);
    }
  }
  return best;
}

// Where a column's first cell is in the histograms of a slot; the next one is GROUP_COLUMNS later.
__device__ __forceinline__ size_t first_cell(const Data& data, int column) {
  const int slab = column / data.slab_columns, in_slab = column % data.slab_columns;
  return static_cast<size_t>(slab) * SLAB_CELLS + in_slab / GROUP_COLUMNS * GROUP_CELLS + in_slab % GROUP_COLUMNS;
}

// Read the histograms of a word's columns to shared memory: first those that were counted; then the other side's, which
// are the part's without them, and take the place of the part's.
__device__ __forceinline__ void load_word(const Data& data, const Space& space, const Opening& opening,
                                          const Part& part, int word, long long* sums) {
  constexpr int PAIRS = COLUMN_VALUES * WORD / 2, TOGETHER = 2;
  const size_t base = first_cell(data, word * WORD);
  const longlong2* own = reinterpret_cast<longlong2*>(histogram_of(data, space, opening.slot) + base);
  longlong2* whole = reinterpret_cast<longlong2*>(histogram_of(data, space, part.slot) + base);
  const bool is_root = opening.part < 0;
  for (int first = threadIdx.x % TEAM_THREADS; first < PAIRS; first += TOGETHER * TEAM_THREADS) {
    longlong2 counted[TOGETHER], other[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      const int pair = first + i * TEAM_THREADS, place = pair / (WORD / 2) * (GROUP_COLUMNS / 2) + pair % (WORD / 2);
      counted[i] = own[place];
      if (!is_root) other[i] = whole[place];
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      const int pair = first + i * TEAM_THREADS, value = pair / (WORD / 2);
      long long* out = sums + pair % (WORD / 2) * 2 * COLUMN_ROOM + room_of(value);
      out[0] = counted[i].x;
      out[COLUMN_ROOM] = counted[i].y;
      if (is_root) continue;
      out += WORD * COLUMN_ROOM;
      out[0] = other[i].x -= counted[i].x;
      out[COLUMN_ROOM] = other[i].y -= counted[i].y;
      whole[value * (GROUP_COLUMNS / 2) + pair % (WORD / 2)] = other[i];
    }
  }
}

// The best cut by the columns of a word, of one side, found by a warp, is what is found at `place`.
// by_column, sets : (WORD,)
__device__ __forceinline__ void keep_word(const Space& space, const Found* by_column, const CodeSet* sets,
                                          size_t place) {
  const int lane = lane_of();
  Leading best = {};
  if (lane < WORD) best = {by_column[lane].gain, by_column[lane].feature, lane};
  best = leading_of_lanes(best, WORD);
  if (lane != 0) return;
  space.found[place] = by_column[best.which];
  if constexpr (CATEGORICAL) keep_set(sets[best.which], space.found_sets + place * SET_WORDS);
}

// The best cuts of the sides of all openings, by word.
__device__ __forceinline__ void search_columns(const Data& data, const Settings& settings, const Space& space) {
  __shared__ Found by_column[TEAMS][2][WORD];
  __shared__ CodeSet sets[CATEGORICAL ? TEAMS : 1][2][WORD];
  const int n_words = words_of(data), n_items = space.growth->n_openings * n_words;
  const int team = warp_of() / TEAM_WARPS, first_task = warp_of() % TEAM_WARPS;
  const int n_sides = space.openings[0].part < 0 ? 1 : 2;
  long long* sums = shared_memory<long long>() + team * 2 * WORD * COLUMN_ROOM;
  for (int first = 0; first < n_items; first += TEAMS * gridDim.x) {
    const int item = first + team * gridDim.x + blockIdx.x, number = min(item, n_items - 1) / n_words;
    const int word = item % n_words;
    const bool is_there = item < n_items;
    const Opening opening = space.openings[number];
    const Part part = space.parts[max(opening.part, 0)];
    if (is_there) load_word(data, space, opening, part, word, sums);
    for (int task = first_task; task < 2 * WORD; task += TEAM_WARPS) {
      const int turn = task / WORD, i = task % WORD;
      const Side side = side_of(data, settings, space, opening, part, turn == 0);
      const int column = is_there && turn < n_sides ? word * WORD + i : data.n_columns;
      CodeSet set = {};
      const Found best = best_of_column(data, settings, space, side, column, sums + task * COLUMN_ROOM, set, [=] {
        if (task == first_task) __syncthreads();
      });
      if (lane_of() != 0) continue;
      by_column[team][side.number][i] = best;
      if constexpr (CATEGORICAL) sets[team][side.number][i] = set;
    }
    __syncthreads();
    for (int side = first_task; is_there && side < n_sides; side += TEAM_WARPS) {
      keep_word(space, by_column[team][side], sets[CATEGORICAL ? team : 0][side],
                (static_cast<size_t>(number) * 2 + side) * n_words + word);
    }
  }
}

}  // namespace
