// Features that rise or fall: bounds of the steps of parts. Groups of features that may interact: those that all
// features above a part are in. See `rules.py`; without such features and groups, nothing is left of this but the step
// itself. Nothing is fused.

#include "stages.cuh"

namespace {

__device__ __forceinline__ Bounds no_bounds() {
  const double infinity = __longlong_as_double(0x7ff0000000000000ll);
  return {-infinity, infinity};
}

__device__ __forceinline__ Bounds bounds_of(const Space& space, int part) {
  if constexpr (BOUNDED) return space.bounds[part];
  return no_bounds();
}

// 1 if the score must not fall where the feature rises, -1 if it must not rise, else 0.
__device__ __forceinline__ int direction_of(const Data& data, int feature) {
  return BOUNDED ? data.direction[feature] : 0;
}

// The codes that the sets of a categorical feature can have, the first ones; 0 if its codes have an order.
__device__ __forceinline__ int set_codes_of(const Data& data, int feature) {
  return CATEGORICAL ? data.set_codes[feature] : 0;
}

__device__ __forceinline__ double bounded_step(double gradient, double hessian, double l1, double l2,
                                               const Bounds& bounds) {
  const double size = __dsub_rn(fabs(gradient), l1), below = __dadd_rn(hessian, l2);
  double step = 0.0;
  if (size > 0.0 && below > 0.0) {
    step = __ddiv_rn(size, below);
    if (gradient > 0.0) step = -step;
  }
  if (step < bounds.low) return bounds.low;
  return step > bounds.high ? bounds.high : step;
}

__device__ __forceinline__ double step_of(const Growth& growth, long long total, const Bounds& bounds) {
  return bounded_step(gradient_of(total), hessian_of(total), growth.l1, growth.l2, bounds);
}

__device__ __forceinline__ double bounded_objective(double gradient, double hessian, double l1, double l2,
                                                    double step) {
  const double size = __dsub_rn(fabs(gradient), l1), shrunk = size > 0.0 ? size : 0.0;
  const double t = gradient > 0.0 ? shrunk : -shrunk;
  return -__dmul_rn(step, __dadd_rn(__dmul_rn(2.0, t), __dmul_rn(__dadd_rn(hessian, l2), step)));
}

// The set of codes on the left of a part's cut, if it has one.
__device__ __forceinline__ unsigned* set_of(const Space& space, int part) { return space.sets + part * SET_WORDS; }

__device__ __forceinline__ unsigned long long* live_groups(const Space& space, int part) {
  return space.live_groups + part * INTERACTION_WORDS;
}

__device__ __forceinline__ const unsigned long long* groups_of(const Data& data, int feature) {
  return data.groups + feature * INTERACTION_WORDS;
}

// Whether a feature is in a group with all features above a part.
__device__ __forceinline__ bool may_interact(const Data& data, const Space& space, int part, int feature) {
#pragma unroll 1
  for (int word = 0; word < INTERACTION_WORDS; ++word) {
    if ((live_groups(space, part)[word] & groups_of(data, feature)[word]) != 0) return true;
  }
  return INTERACTION_WORDS == 0;
}

__device__ __forceinline__ void begin_rules(const Space& space) {
  if constexpr (BOUNDED) space.bounds[0] = no_bounds();
#pragma unroll 1
  for (int word = 0; word < INTERACTION_WORDS; ++word) live_groups(space, 0)[word] = ~0ull;
}

__device__ __forceinline__ void pass_on_bounds(const Data& data, const Space& space, const Opening& opening) {
  const Part& part = space.parts[opening.part];
  const int direction = direction_of(data, part.feature);
  Bounds left = bounds_of(space, opening.part), right = left;
  if (direction != 0) {
    const double step = step_of(*space.growth, part.left_total, left);
    const double other = step_of(*space.growth, part.total - part.left_total, left);
    const double middle = __dmul_rn(__dadd_rn(step, other), 0.5);
    (direction > 0 ? left : right).high = middle;
    (direction > 0 ? right : left).low = middle;
  }
  space.bounds[opening.left] = left;
  space.bounds[opening.left + 1] = right;
}

// What holds for the sides of an opening, by the cut of its part.
__device__ __forceinline__ void pass_on_rules(const Data& data, const Space& space, const Opening& opening) {
  if constexpr (BOUNDED) pass_on_bounds(data, space, opening);
#pragma unroll 1
  for (int word = 0; word < INTERACTION_WORDS; ++word) {
    const unsigned long long of_feature = groups_of(data, space.parts[opening.part].feature)[word];
    const unsigned long long live = live_groups(space, opening.part)[word] & of_feature;
    live_groups(space, opening.left)[word] = live_groups(space, opening.left + 1)[word] = live;
  }
}

}  // namespace
