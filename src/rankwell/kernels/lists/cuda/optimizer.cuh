// A step of gradient descent with momentum, or of Adam.
//
// Macros: ADAM  0 or 1

#include "lists.cuh"

__device__ inline void optimizer_step(const Optimizer& optimizer, double corrections[2], float gradient,
                                      float& parameter, float& first, float& second) {
#if ADAM
  first = optimizer.beta1 * first + (1.0f - optimizer.beta1) * gradient;
  second = optimizer.beta2 * second + (1.0f - optimizer.beta2) * gradient * gradient;
  float scale = static_cast<float>(optimizer.rate * corrections[0]);
  float root = sqrtf(second * static_cast<float>(corrections[1])) + optimizer.epsilon;
  parameter -= scale * first / root;
  parameter -= optimizer.rate * optimizer.weight_decay * parameter;
#else
  first = optimizer.momentum * first + gradient;
  parameter -= optimizer.rate * first + optimizer.rate * optimizer.weight_decay * parameter;
#endif
}

__device__ inline void adam_corrections(const Optimizer& optimizer, long long step, double corrections[2]) {
#if ADAM
  corrections[0] = 1.0 / (1.0 - pow(static_cast<double>(optimizer.beta1), static_cast<double>(step)));
  corrections[1] = 1.0 / (1.0 - pow(static_cast<double>(optimizer.beta2), static_cast<double>(step)));
#else
  corrections[0] = corrections[1] = 1.0;
#endif
}
