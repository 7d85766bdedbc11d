// RankSVM: the Hessian-vector product that reads X once.
//
// Only conjugate gradients use it, so it multiplies in float32: x - centre, where centre is near the columns' means (a
// constant added to every row of a query cancels in its pairs), times the vector over a lane's columns and then over
// lanes; rows times factors for runs of at most kRunRows rows, which are added in float64. Sums over partners are
// float64. Every sum has a fixed order: every run gives the same numbers.
//
// Bulk copies and barriers that count their bytes need compute capability 9.0; for other devices this file is empty.

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

#include "pipeline_tasks.cuh"

namespace {

// total(column, sum) of row(0, column) ... row(n_rows - 1, column), by all threads of a block: each sums a part of the
// rows of a column; `room` stores the parts.
template <typename Row, typename Total>
__device__ void sum_by_block(double* room, int n_rows, Row row, Total total) {
  const int n_parts = max(1, static_cast<int>(blockDim.x) / kColumns), per_part = (n_rows + n_parts - 1) / n_parts;
  for (int k = threadIdx.x; k < n_parts * kColumns; k += blockDim.x) {
    const int part = k / kColumns, column = k % kColumns;
    double sum = 0.0;
#pragma unroll 8
    for (int j = part * per_part; j < min(n_rows, (part + 1) * per_part); ++j) sum += row(j, column);
    room[k] = sum;
  }
  __syncthreads();
  for (int column = threadIdx.x; column < kColumns; column += blockDim.x) {
    double sum = 0.0;
    for (int part = 0; part < n_parts; ++part) sum += room[part * kColumns + column];
    total(column, sum);
  }
}

// Whether all other blocks have written what this one will read.
__device__ bool is_last_block(unsigned* n_finished) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(n_finished, 1) == gridDim.x - 1;
    if (is_last) *n_finished = 0;
  }
  __syncthreads();
  __threadfence();
  return is_last;
}

}  // namespace

// product = 2 scale Xt AtA X (scale vector) (equation 13 without v and C).
// Threads: 32 (FILL_WARPS + MULTIPLY_WARPS + SUM_WARPS + ADD_WARPS); n_slots is at least the warps of any one task.
extern "C" __global__ void __launch_bounds__(kWarp*(kFirstFillWarp + FILL_WARPS), 1)
    hessian_vector(const float4* __restrict__ features,  // n_docs x COLUMN_GROUPS
                   const float* __restrict__ centre,     // 4 COLUMN_GROUPS
                   const double* __restrict__ scale,     // n_features
                   const double* __restrict__ vector,    // n_features
                   int n_features,
                   const Place* __restrict__ places,   // n_docs
                   const double* __restrict__ degree,  // n_docs
                   const int* __restrict__ ranks,
                   const double* __restrict__ document_weights,  // n_docs, or null if all are 1
                   const Query* __restrict__ queries,            // those with pairs
                   const int* __restrict__ block_ptr,            // gridDim.x + 1: the queries of each block
                   int n_slots,                                  // chunks in shared memory
                   int n_factors,  // rows whose factors are in shared memory, a multiple of 4
                   double* scratch,
                   double* partial,                 // gridDim.x x 4 COLUMN_GROUPS
                   unsigned* n_finished,            // 0 before and after
                   double* __restrict__ product) {  // n_features
  extern __shared__ float4 shared_groups[];
  const int n_turns = n_slots + 2 * MULTIPLY_WARPS;
  auto* filled = reinterpret_cast<unsigned long long*>(shared_groups + n_slots * kChunkGroups);
  auto *freed = filled + n_slots, *multiplied = freed + n_slots, *summed = multiplied + n_turns;
  float* factors = reinterpret_cast<float*>(summed + n_turns);
  double* workspace = reinterpret_cast<double*>(factors + n_factors);
  const Pipeline pipeline{shared_groups,
                          filled,
                          freed,
                          multiplied,
                          summed,
                          factors,
                          n_slots,
                          n_factors,
                          queries,
                          block_ptr[blockIdx.x],
                          block_ptr[blockIdx.x + 1]};
  pipeline.init();
  __syncthreads();

  const int warp = threadIdx.x / kWarp;
  LaneColumns<float> own_centre{};
  own_centre.for_each([&](float& number, int column) { number = centre[column]; });
  LaneColumns<double> total{};
  if (warp < kFirstMultiplyWarp) {
    total = add(pipeline, features, own_centre, scratch);
  } else if (warp < kFirstSumWarp) {
    LaneColumns<float> own_vector{};
    own_vector.for_each([&](float& number, int column) {
      if (column < n_features) number = static_cast<float>(vector[column] * scale[column]);
    });
    multiply(pipeline, own_vector, own_centre, scratch);
  } else if (warp < kFirstFillWarp) {
    sum(pipeline, {places, degree, ranks, document_weights}, workspace, scratch);
  } else if (threadIdx.x % kWarp == 0) {
    fill(pipeline, features);
  }
  __syncwarp();
  // The ring is empty now: its memory is used for the sums of warps and of blocks.
  __syncthreads();
  double* sums = reinterpret_cast<double*>(shared_groups);
  if (warp < ADD_WARPS) total.for_each([&](double& number, int column) { sums[warp * kColumns + column] = number; });
  __syncthreads();
  double* own_partial = partial + static_cast<long long>(blockIdx.x) * kColumns;
  for (int column = threadIdx.x; column < kColumns; column += blockDim.x) {
    double sum = 0.0;
    for (int k = 0; k < ADD_WARPS; ++k) sum += sums[k * kColumns + column];
    own_partial[column] = sum;
  }
  if (!is_last_block(n_finished)) return;
  sum_by_block(
      sums, gridDim.x, [&](int block, int column) { return __ldcg(partial + block * kColumns + column); },
      [&](int column, double sum) {
        if (column < n_features) product[column] = 2.0 * scale[column] * sum;
      });
}

#endif
