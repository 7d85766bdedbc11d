// Features that rise or fall: bounds of the steps of parts (see `rules.py`). Without such features, nothing is left of
// this but the step itself. Nothing is fused.

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

__device__ __forceinline__ void begin_rules(const Space& space) {
  if constexpr (BOUNDED) space.bounds[0] = no_bounds();
}

// What holds for the sides of an opening, by the cut of its part.
__device__ __forceinline__ void pass_on_rules(const Data& data, const Space& space, const Opening& opening) {
  if constexpr (BOUNDED) {
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
}

}  // namespace
