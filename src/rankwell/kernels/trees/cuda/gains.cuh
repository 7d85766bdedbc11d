// What a cut gains, and the sums that it follows from: see `rules.py`. Nothing is fused.

#include "feature_rules.cuh"
#include "stages.cuh"

namespace {

// Codes of a lane, one after another, if there are more than lanes. A column's sums have a gap after so many of them:
// the lanes then read different banks.
constexpr int LANE_CODES = COLUMN_VALUES / 32;
constexpr int COLUMN_ROOM = COLUMN_VALUES + COLUMN_VALUES / LANE_CODES + 2;

__device__ __forceinline__ int room_of(int value) { return value + value / LANE_CODES; }

struct Bound {
  double gradient, hessian, l1, l2, least, objective, min_gain;
  Bounds bounds;
  long long total;
};

__device__ __forceinline__ double shrunk_square(double gradient, double l1) {
  const double size = __dsub_rn(fabs(gradient), l1);
  return size > 0.0 ? __dmul_rn(size, size) : 0.0;
}

__device__ __forceinline__ Bound bound_of(const Growth& growth, long long total, int n_docs, const Bounds& bounds) {
  Bound bound;
  bound.gradient = gradient_of(total);
  bound.hessian = hessian_of(total);
  bound.l1 = growth.l1;
  bound.l2 = growth.l2;
  bound.min_gain = growth.min_gain;
  bound.bounds = bounds;
  bound.total = total;
  const double below = __dadd_rn(bound.hessian, bound.l2);
  if constexpr (BOUNDED) {
    const double step = step_of(growth, total, bounds);
    bound.objective = bounded_objective(bound.gradient, bound.hessian, bound.l1, bound.l2, step);
  } else {
    bound.objective = below > 0.0 ? __ddiv_rn(shrunk_square(bound.gradient, bound.l1), below) : 0.0;
  }
  const long long twice = 2 * static_cast<long long>(max(n_docs, 1));
  const long long docs = 2 * static_cast<long long>(growth.min_docs_leaf) - 1;
  const long long by_docs = (hessian_of(total) * docs + twice - 1) / twice;
  bound.least = max(max(by_docs, growth.least_hessian), 1ll);
  return bound;
}

// 0 if the cut with this left side is not allowed. direction : of its feature
__device__ __forceinline__ double cut_gain(const Bound& bound, long long left, int direction) {
  const double g1 = gradient_of(left), h1 = hessian_of(left);
  const double g2 = __dsub_rn(bound.gradient, g1), h2 = __dsub_rn(bound.hessian, h1);
  if (h1 < bound.least || h2 < bound.least) return 0.0;
  if constexpr (BOUNDED) {
    const double step1 = bounded_step(g1, h1, bound.l1, bound.l2, bound.bounds);
    const double step2 = bounded_step(g2, h2, bound.l1, bound.l2, bound.bounds);
    if (__dmul_rn(__dsub_rn(step2, step1), direction) < 0.0) return 0.0;
    const double objective1 = bounded_objective(g1, h1, bound.l1, bound.l2, step1);
    const double objective2 = bounded_objective(g2, h2, bound.l1, bound.l2, step2);
    return __dsub_rn(__dadd_rn(objective1, objective2), bound.objective);
  }
  const double a = __dadd_rn(h1, bound.l2), b = __dadd_rn(h2, bound.l2);
  const double top = __dadd_rn(__dmul_rn(shrunk_square(g1, bound.l1), b), __dmul_rn(shrunk_square(g2, bound.l1), a));
  return __dsub_rn(__ddiv_rn(top, __dmul_rn(a, b)), bound.objective);
}

// A feature that may be cut.
struct Cuttable {
  int number, divisor, n_codes, direction;
  int n_set_codes;  // that the sets of a categorical feature can have, the first ones; else 0
  bool may_miss, is_allowed;
};

struct Candidate {
  double gain;
  long long left;
  int order;  // code, and COLUMN_VALUES more if missing values go right: of equal gains the lowest is taken
};

__device__ __forceinline__ Candidate no_candidate() { return {0.0, 0, 2 * COLUMN_VALUES}; }

__device__ __forceinline__ void take_better(Candidate& best, double gain, long long left, int order) {
  if (gain > best.gain || (gain == best.gain && order < best.order)) {
    best.gain = gain;
    best.left = left;
    best.order = order;
  }
}

__device__ __forceinline__ Candidate best_of_lanes(Candidate best) {
#pragma unroll 1
  for (int apart = 16; apart > 0; apart /= 2) {
    const double gain = __shfl_xor_sync(WHOLE_WARP, best.gain, apart);
    const long long left = __shfl_xor_sync(WHOLE_WARP, best.left, apart);
    const int order = __shfl_xor_sync(WHOLE_WARP, best.order, apart);
    take_better(best, gain, left, order);
  }
  return best;
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

// A function that gives a lane the packed sum of a code: of its own one if there are no more than lanes.
// sums : of its column, in shared memory
__device__ __forceinline__ auto sums_of_codes(const Cuttable& feature, int size, const long long* sums) {
  const int n_codes = feature.n_codes, divisor = feature.divisor;
  // Few codes of a column that several features share are a lane each, and known before.
  const bool is_shared = size != n_codes && n_codes < 32;
  const long long known = is_shared ? shared_sum(sums, divisor, n_codes, size) : 0;
  return [=](int code) { return is_shared ? known : sum_of_code(sums, divisor, n_codes, size, code); };
}

}  // namespace
