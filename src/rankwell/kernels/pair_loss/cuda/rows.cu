// RankSVM: products of all rows with a vector, and sums of rows, dense and sparse. Used once for each point that the
// solver tries, and for every product of features that the fused kernel does not take (sparse, or very many).
//
// Sums are float64 and in a fixed order: the same numbers come out of every run.

#include "team.cuh"
#include "declarations.h"  // made by kernels/pair_loss/declarations.py

namespace {

__device__ double sum_over_warp(double x) {
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

}  // namespace

// products[row] = x . vector. One warp a row; rows are n_groups groups of 4 features.
extern "C" __global__ void row_products(const float4* __restrict__ features, const double* __restrict__ vector,
                                        long long n_docs, int n_groups, double* __restrict__ products) {
  const int lane = threadIdx.x % kWarp;
  const long long n_warps = static_cast<long long>(gridDim.x) * (blockDim.x / kWarp);
  for (long long row = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; row < n_docs;
       row += n_warps) {
    double total = 0.0;
    for (int group = lane; group < n_groups; group += kWarp) {
      const float4 value = features[row * n_groups + group];
      total += static_cast<double>(value.x) * vector[4 * group] + static_cast<double>(value.y) * vector[4 * group + 1] +
               static_cast<double>(value.z) * vector[4 * group + 2] +
               static_cast<double>(value.w) * vector[4 * group + 3];
    }
    total = sum_over_warp(total);
    if (lane == 0) products[row] = total;
  }
}

// partial[block] = sum of factors[row] x over the block's share of the rows. gridDim.y blocks share the columns.
extern "C" __global__ void add_rows(const float4* __restrict__ features, const double* __restrict__ factors,
                                    long long n_docs, int n_groups, double* __restrict__ partial) {
  extern __shared__ double totals[];  // 4 blockDim.x
  const int n_columns = min(n_groups, static_cast<int>(blockDim.x));
  const int n_row_groups = blockDim.x / n_columns;
  const int own_row = threadIdx.x / n_columns;
  const int group = blockIdx.y * blockDim.x + threadIdx.x % n_columns;
  const long long first = n_docs * blockIdx.x / gridDim.x, end = n_docs * (blockIdx.x + 1) / gridDim.x;
  double total[4] = {};
  if (own_row < n_row_groups && group < n_groups) {
#pragma unroll 4
    for (long long row = first + own_row; row < end; row += n_row_groups) {
      const float4 value = features[row * n_groups + group];
      const double factor = factors[row];
      total[0] += factor * static_cast<double>(value.x);
      total[1] += factor * static_cast<double>(value.y);
      total[2] += factor * static_cast<double>(value.z);
      total[3] += factor * static_cast<double>(value.w);
    }
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) totals[4 * threadIdx.x + j] = total[j];
  __syncthreads();
  for (int column = threadIdx.x; column < 4 * n_columns; column += blockDim.x) {
    const int own_column = 4 * blockIdx.y * blockDim.x + column;
    if (own_column >= 4 * n_groups) continue;
    double sum = 0.0;
    for (int row = 0; row < n_row_groups; ++row) sum += totals[4 * row * n_columns + column];
    partial[static_cast<long long>(blockIdx.x) * 4 * n_groups + own_column] = sum;
  }
}

// factors[row] = what the row's square counts in the diagonal: its partners' weight times its own.
extern "C" __global__ void curvature_factors(const Place* __restrict__ places, const double* __restrict__ degree,
                                             const long long* __restrict__ query_ptr, const int* __restrict__ n_levels,
                                             const double* __restrict__ query_weights,
                                             const double* __restrict__ document_weights, int n_queries,
                                             double* __restrict__ factors) {
  for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
    const long long start = query_ptr[query], end = query_ptr[query + 1];
    const bool has_pairs = n_levels[query] > 1;
    for (long long place = start + threadIdx.x; place < end; place += blockDim.x) {
      const long long row = has_pairs ? start + places[place].row : place;
      const double weight = query_weights[query] * (document_weights ? document_weights[row] : 1.0);
      factors[row] = has_pairs ? weight * degree[place] : 0.0;
    }
  }
}

// partial[block] = sum over the block's queries of the variance of each feature under the factors, times their sum: see
// kernels/pair_loss/cpu/product.py. gridDim.y blocks share the columns.
extern "C" __global__ void add_curvature(const float4* __restrict__ features, const double* __restrict__ factors,
                                         const long long* __restrict__ query_ptr, const int* __restrict__ block_ptr,
                                         int n_groups, double* __restrict__ partial) {
  extern __shared__ double totals[];  // 4 blockDim.x
  __shared__ double weights[kWarp];
  const int n_columns = min(n_groups, static_cast<int>(blockDim.x));
  const int n_row_groups = blockDim.x / n_columns;
  const int own_row = threadIdx.x / n_columns, lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int group = blockIdx.y * blockDim.x + threadIdx.x % n_columns;
  const bool is_active = own_row < n_row_groups && group < n_groups;
  double squares[4] = {};
  for (int query = block_ptr[blockIdx.x]; query < block_ptr[blockIdx.x + 1]; ++query) {
    const long long start = query_ptr[query], end = query_ptr[query + 1];
    double weight = 0.0;
    for (long long row = start + threadIdx.x; row < end; row += blockDim.x) weight += factors[row];
    weight = sum_over_warp(weight);
    if (lane == 0) weights[warp] = weight;
    double total[4] = {};
    if (is_active) {
      for (long long row = start + own_row; row < end; row += n_row_groups) {
        const float4 value = features[row * n_groups + group];
        const double factor = factors[row];
        const double x[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          total[j] += factor * x[j];
          squares[j] += factor * x[j] * x[j];
        }
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) totals[4 * threadIdx.x + j] = total[j];
    __syncthreads();
    if (is_active && own_row == 0) {
      weight = 0.0;
      for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) weight += weights[w];
      if (weight > 0.0) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          double sum = 0.0;
          for (int row = 0; row < n_row_groups; ++row) sum += totals[4 * (row * n_columns + threadIdx.x) + j];
          squares[j] -= sum * sum / weight;
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) totals[4 * threadIdx.x + j] = squares[j];
  __syncthreads();
  for (int column = threadIdx.x; column < 4 * n_columns; column += blockDim.x) {
    const int own_column = 4 * blockIdx.y * blockDim.x + column;
    if (own_column >= 4 * n_groups) continue;
    double sum = 0.0;
    for (int row = 0; row < n_row_groups; ++row) sum += totals[4 * row * n_columns + column];
    partial[static_cast<long long>(blockIdx.x) * 4 * n_groups + own_column] = sum;
  }
}

// products[row] = x . vector for rows in CSR, one warp a row.
extern "C" __global__ void sparse_row_products(const float* __restrict__ values, const int* __restrict__ columns,
                                               const long long* __restrict__ row_ptr, const double* __restrict__ vector,
                                               long long n_docs, double* __restrict__ products) {
  const int lane = threadIdx.x % kWarp;
  const long long n_warps = static_cast<long long>(gridDim.x) * (blockDim.x / kWarp);
  for (long long row = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; row < n_docs;
       row += n_warps) {
    double total = 0.0;
    for (long long k = row_ptr[row] + lane; k < row_ptr[row + 1]; k += kWarp)
      total += static_cast<double>(values[k]) * vector[columns[k]];
    total = sum_over_warp(total);
    if (lane == 0) products[row] = total;
  }
}

// total[column] = sum of factors[row] x (or of factors[row] x squared) over a column in CSC, one warp a column: no two
// threads add to one number, so the order of the sum is fixed.
extern "C" __global__ void sparse_column_sums(const float* __restrict__ values, const int* __restrict__ rows,
                                              const long long* __restrict__ column_ptr,
                                              const double* __restrict__ factors, int n_features, int squared,
                                              double* __restrict__ total) {
  const int lane = threadIdx.x % kWarp;
  const int n_warps = gridDim.x * (blockDim.x / kWarp);
  for (int column = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp; column < n_features; column += n_warps) {
    double sum = 0.0;
    for (long long k = column_ptr[column] + lane; k < column_ptr[column + 1]; k += kWarp) {
      const double value = values[k];
      sum += factors[rows[k]] * (squared ? value * value : value);
    }
    sum = sum_over_warp(sum);
    if (lane == 0) total[column] = sum;
  }
}
