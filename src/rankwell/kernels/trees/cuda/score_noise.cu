// Scores with noise: those that pair losses with `noise` rank documents by (`add_noise` of cpu/random_gradients.py,
// operation by operation).

#include "declarations.h"
#include "elementary_functions.cuh"
#include "random_numbers.cuh"

// noisy = scores − noise·ln(−ln u), u drawn for the tree; a document a thread.
extern "C" __global__ void __launch_bounds__(NOISE_THREADS)
    add_noise(const float* scores, int n_docs, double noise, long long seed, long long tree, float* noisy) {
  const int document = blockIdx.x * NOISE_THREADS + threadIdx.x;
  if (document >= n_docs) return;
  const double drawn = logarithm(-logarithm(random_unit(seed, tree, document)));
  noisy[document] = narrow(__dsub_rn(widen(scores[document]), __dmul_rn(noise, drawn)));
}
