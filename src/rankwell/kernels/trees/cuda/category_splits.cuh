// The best cut of a side by a categorical feature: codes in the order of their gradients (see `rules.py`). Nothing is
// fused.

#include "feature_rules.cuh"
#include "gains.cuh"

namespace {

// A lane has every 32nd code.
constexpr int OWN_CODES = COLUMN_VALUES / 32;
static_assert(OWN_CODES == SET_WORDS, "a word of a set has a bit for each lane");

// The codes on the left of a cut, a bit each.
struct CodeSet {
  unsigned words[SET_WORDS];
};

__device__ __forceinline__ bool has_code(const unsigned* words, int code) { return words[code / 32] >> code % 32 & 1; }

// Where to: `to` is SET_WORDS words.
__device__ __forceinline__ void keep_set(const CodeSet& set, unsigned* to) {
#pragma unroll
  for (int i = 0; i < SET_WORDS; ++i) to[i] = set.words[i];
}

// What is counted in documents, in units of Hessian.
__device__ __forceinline__ double of_documents(double documents, double hessian, int n_docs) {
  return __dmul_rn(documents, __ddiv_rn(hessian, n_docs));
}

// l2 of the sides of a cut by categories, and of their values; n_codes : that a set can have
__device__ __forceinline__ double category_l2(const Settings& settings, const Growth& growth, double hessian,
                                              int n_docs, int n_codes) {
  if (n_codes <= FEW_CODES) return growth.l2;
  return __dadd_rn(growth.l2, of_documents(settings.category_l2, hessian, n_docs));
}

// A lane's codes: their packed sums, those up to each in the order of the keys, and how many are before it.
struct OrderedCodes {
  long long own[OWN_CODES], up_to[OWN_CODES];
  int before[OWN_CODES];
  bool is_usual[OWN_CODES];
};

// Put a feature's codes in order, by a warp: each is compared with all.
template <class SumOf>
__device__ __forceinline__ OrderedCodes order_codes(int n_codes, double smoothing, SumOf sum_of) {
  const double infinity = no_bounds().high;
  OrderedCodes codes;
  double key[OWN_CODES];
#pragma unroll
  for (int i = 0; i < OWN_CODES; ++i) {
    const int code = 32 * i + lane_of();
    const long long own = code < n_codes ? sum_of(code) : 0;
    const double hessian = hessian_of(own);
    codes.own[i] = codes.up_to[i] = own;
    codes.before[i] = 0;
    codes.is_usual[i] = hessian > 0.0 && hessian >= smoothing;
    key[i] = codes.is_usual[i] ? __ddiv_rn(gradient_of(own), __dadd_rn(hessian, smoothing)) : infinity;
  }
#pragma unroll 1
  for (int lane = 0; lane < min(n_codes, 32); ++lane) {
#pragma unroll
    for (int other = 0; other < OWN_CODES; ++other) {
      if (32 * other >= n_codes) break;
      const double its_key = __shfl_sync(WHOLE_WARP, key[other], lane);
      const long long its_sum = __shfl_sync(WHOLE_WARP, codes.own[other], lane);
#pragma unroll
      for (int i = 0; i < OWN_CODES; ++i) {
        const bool comes_first = 32 * other + lane < 32 * i + lane_of();
        const bool is_before = its_key < key[i] || (its_key == key[i] && comes_first);
        codes.before[i] += is_before;
        codes.up_to[i] += is_before ? its_sum : 0;
      }
    }
  }
  return codes;
}

// The best cut by sets of a few codes, each of them alone.
template <class SumOf>
__device__ __forceinline__ Candidate best_code(const Bound& sides, int n_codes, SumOf sum_of, CodeSet& set) {
  const int code = lane_of();
  Candidate best = no_candidate();
  if (code < n_codes) {
    const long long own = sum_of(code);
    take_better(best, cut_gain(sides, own, 0), own, code);
  }
  best = best_of_lanes(best);
  set = {};
  set.words[0] = 1u << (best.order & 31);
  return best;
}

// The best cut by sets of the first codes, or of the last ones, in the order of their keys. The candidate's order is
// that of rules.py: the size of a set less 1, and COLUMN_VALUES more for the last ones.
template <class SumOf>
__device__ __forceinline__ Candidate best_codes(const Settings& settings, const Bound& sides, int n_codes,
                                                double smoothing, SumOf sum_of, CodeSet& set) {
  const OrderedCodes codes = order_codes(n_codes, smoothing, sum_of);
  long long all = 0;
  int n_usual = 0;
#pragma unroll
  for (int i = 0; i < OWN_CODES; ++i) {
    all += codes.is_usual[i] ? codes.own[i] : 0;
    n_usual += codes.is_usual[i];
  }
  all = sum_of_warp(all);
  n_usual = sum_of_warp(n_usual);
  const int most = min((n_usual + 1) / 2, settings.max_category_set);
  Candidate best = no_candidate();
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
#pragma unroll
    for (int i = 0; i < OWN_CODES; ++i) {
      const int size = side == 0 ? codes.before[i] + 1 : n_usual - codes.before[i];
      const long long left = side == 0 ? codes.up_to[i] : all - codes.up_to[i] + codes.own[i];
      if (!codes.is_usual[i] || size > most) continue;
      take_better(best, cut_gain(sides, left, 0), left, side * COLUMN_VALUES + size - 1);
    }
  }
  best = best_of_lanes(best);
  const int size = best.order % COLUMN_VALUES + 1;
#pragma unroll
  for (int i = 0; i < OWN_CODES; ++i) {
    const bool is_among = best.order < COLUMN_VALUES ? codes.before[i] < size : n_usual - codes.before[i] <= size;
    set.words[i] = __ballot_sync(WHOLE_WARP, codes.is_usual[i] && is_among);
  }
  return best;
}

// The best cut by sets of a feature's codes, found by a warp; all lanes know the set. sums : of its column
__device__ __noinline__ Candidate best_set_of(const Settings& settings, const Growth& growth, const Bound& bound,
                                              int n_docs, const Cuttable& feature, int size, const long long* sums,
                                              CodeSet& set) {
  const auto sum_of = sums_of_codes(feature, size, sums);
  Bound sides = bound;
  sides.l2 = category_l2(settings, growth, bound.hessian, n_docs, feature.n_set_codes);
  if (feature.n_set_codes <= FEW_CODES) return best_code(sides, feature.n_set_codes, sum_of, set);
  const double smoothing = of_documents(settings.category_smoothing, bound.hessian, n_docs);
  return best_codes(settings, sides, feature.n_set_codes, smoothing, sum_of, set);
}

}  // namespace
