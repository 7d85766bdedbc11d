// RankBoost in OpenCL C 1.2: whole rounds on the device, the twin of boosting.cu for other vendors.
//
//   potentials, histograms, integrate, choose, reweight, sum_levels, lane_sums, fold_lanes, total:
//
// one after the other, and the host waits for none of them.
//
// Vocabulary and precision are those of `contract.py` and `precision.py`. One work-item takes one
// query, since OpenCL 1.2 knows no warps; sums run in the same order as on the CPU.

#ifdef WITH_DOUBLES
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#endif

#include "declarations.h"  // made by kernels/boosting/declarations.py

// One work-group a feature and part of the documents. bins : [n_features][stride]; out : [n_features][256]
kernel void histograms(global const uchar* bins, global const int* pi, int stride, int n_parts,
                       global const int* control, global int* out) {
  local int histogram[BINS];
  if (control[FINISHED]) return;
  const int feature = get_group_id(0) / n_parts, part = get_group_id(0) % n_parts;
  const int words = stride / 4;
  for (int b = get_local_id(0); b < BINS; b += get_local_size(0)) histogram[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const int end = (int)((long)words * (part + 1) / n_parts);
  global const uchar4* column = (global const uchar4*)(bins + (size_t)feature * stride);
  for (int i = (int)((long)words * part / n_parts) + get_local_id(0); i < end; i += get_local_size(0)) {
    const uchar4 bin = column[i];
    const int4 value = vload4(i, pi);
    atomic_add(&histogram[bin.x], value.x);
    atomic_add(&histogram[bin.y], value.y);
    atomic_add(&histogram[bin.z], value.z);
    atomic_add(&histogram[bin.w], value.w);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = get_local_id(0); b < BINS; b += get_local_size(0)) {
    if (histogram[b] != 0) atomic_add(&out[(size_t)feature * BINS + b], histogram[b]);
  }
}

// r(f, b) = Σ_{a > b} Hist_f(a) and its largest size; the histogram is left at 0 for the next round. One feature an
// item.
kernel void integrate(global int* histogram, int n_features, int n_bins, global int* table, global int* largest,
                      global const int* control) {
  const int feature = get_global_id(0);
  if (control[FINISHED] || feature >= n_features) return;
  const size_t first = (size_t)feature * BINS;
  int sum = 0, size = 0;
  for (int b = n_bins - 2; b >= 0; --b) {
    sum += histogram[first + b + 1];
    histogram[first + b + 1] = 0;
    table[first + b] = sum;
    size = max(size, (int)abs(sum));
  }
  histogram[first] = 0;
  largest[feature] = size;
}

// The lowest feature, then bin, whose |r| is within `margin` of the largest. One work-item.
kernel void choose(global const int* table, global const int* largest, int n_features, int n_bins, int margin,
                   global int* control) {
  if (control[FINISHED]) return;
  int best = 0;
  for (int f = 0; f < n_features; ++f) best = max(best, largest[f]);
  if (best <= margin) {
    control[FINISHED] = 1;
    return;
  }
  int feature = 0, bin = 0;
  while (largest[feature] < best - margin) ++feature;
  while ((int)abs(table[(size_t)feature * BINS + bin]) < best - margin) ++bin;
  control[FEATURE] = feature;
  control[BIN] = bin;
  control[R] = min(max(table[(size_t)feature * BINS + bin], -LARGEST_R), LARGEST_R);
  control[RECENTRES] = (control[ROUND] + 1) % RECENTRE_ROUNDS == 0;
  control[NEXT_COMMON] = INT_MIN;
}

#ifdef WITH_DOUBLES

// Σ values[start:end] in eight lanes; lane j takes places j, j + 8, ...
double lane_sum(global const double* values, int start, int end) {
  double lanes[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  for (int i = start; i < end; ++i) lanes[(i - start) & 7] += values[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Scale values[start:end] by a power of two so that the largest is in [0.5, 1); returns the power taken out.
int rescale(global double* values, int start, int end) {
  double largest = 0.0;
  for (int i = start; i < end; ++i) largest = fmax(largest, values[i]);
  int exponent;
  frexp(largest, &exponent);
  const double scale = ldexp(1.0, -exponent);
  for (int i = start; i < end; ++i) values[i] = fmax(values[i] * scale, SMALLEST_WEIGHT);
  return exponent;
}

kernel void potentials(global const int* segment_ptr, global const int* query_segments, int n_queries,
                       global const double* up, global const double* down, global const double* below,
                       global const double* above, global const double* total_at, global const int* control,
                       global int* pi) {
  const int q = get_global_id(0);
  if (control[FINISHED] || q >= n_queries) return;
  const double scale = 1.0 / PI_UNIT / total_at[0];
  int left_over = 0;
  for (int s = query_segments[q]; s < query_segments[q + 1]; ++s) {
    for (int i = segment_ptr[s]; i < segment_ptr[s + 1]; ++i) {
      const double rise = down[i] * below[s], fall = up[i] * above[s];
      pi[i] = convert_int_rte((rise - fall) * scale);
      left_over += pi[i];
    }
  }
  pi[segment_ptr[query_segments[q + 1]] - 1] -= left_over;
}

// e^{±H} where h = 1 times e^{±α}; on a recentring round new powers of two. column : the chosen feature's bins, in
// `bins`
kernel void reweight(global const int* segment_ptr, global const int* query_segments, int n_queries,
                     global const uchar* bins, int stride, global double* up, global double* down,
                     global int* up_exponent, global int* down_exponent, global int* control) {
  const int q = get_global_id(0);
  if (control[FINISHED] || q >= n_queries) return;
  const double r = control[R] * PI_UNIT;
  const double up_factor = sqrt((1.0 + r) / (1.0 - r)), down_factor = sqrt((1.0 - r) / (1.0 + r));
  global const uchar* column = bins + (size_t)control[FEATURE] * stride;
  const int first = query_segments[q], last = query_segments[q + 1];
  for (int i = segment_ptr[first]; i < segment_ptr[last]; ++i) {
    if (column[i] > control[BIN]) {
      up[i] = fmax(up[i] * up_factor, SMALLEST_WEIGHT);
      down[i] = fmax(down[i] * down_factor, SMALLEST_WEIGHT);
    }
  }
  if (!control[RECENTRES]) return;
  int carried = INT_MIN;
  for (int s = first; s < last; ++s) {
    up_exponent[s] += rescale(up, segment_ptr[s], segment_ptr[s + 1]);
    down_exponent[s] -= rescale(down, segment_ptr[s], segment_ptr[s + 1]);
    if (s > first) atomic_max(&control[NEXT_COMMON], carried - down_exponent[s]);
    carried = max(carried, up_exponent[s]);
  }
}

// Running sums over a query's levels; on a recentring round the factors between levels first.
kernel void sum_levels(global const int* segment_ptr, global const int* query_segments,
                       global const double* query_weight, global const double* step, double carry, int n_queries,
                       global const double* up, global const double* down, global const int* up_exponent,
                       global const int* down_exponent, global double* up_ratio, global double* down_ratio,
                       global double* bridge, global double* below, global double* above, global double* share,
                       global const int* control) {
  const int q = get_global_id(0);
  if (control[FINISHED] || q >= n_queries) return;
  const int first = query_segments[q], last = query_segments[q + 1];
  for (int s = first + 1; s < last && control[RECENTRES]; ++s) {
    up_ratio[s] = ldexp(1.0, min(up_exponent[s - 1] - up_exponent[s], LARGEST_EXPONENT));
    down_ratio[s] = ldexp(1.0, min(down_exponent[s - 1] - down_exponent[s], LARGEST_EXPONENT));
    bridge[s] = ldexp(query_weight[q], up_exponent[s - 1] - down_exponent[s] - control[NEXT_COMMON]);
  }
  double plain = 0.0, weighted = 0.0, sum = 0.0;
  below[first] = 0.0;
  for (int s = first + 1; s < last; ++s) {
    const double entering = lane_sum(up, segment_ptr[s - 1], segment_ptr[s]) * bridge[s];
    plain = plain * down_ratio[s] + entering;
    const double gained = step[s] * plain;
    weighted = weighted * (down_ratio[s] * carry) + gained;
    below[s] = weighted;
    const double of_level = lane_sum(down, segment_ptr[s], segment_ptr[s + 1]) * weighted;
    sum += of_level;
  }
  plain = weighted = 0.0;
  above[last - 1] = 0.0;
  for (int s = last - 1; s > first; --s) {
    const double entering = lane_sum(down, segment_ptr[s], segment_ptr[s + 1]) * bridge[s];
    plain = plain * up_ratio[s] + entering;
    const double gained = step[s] * plain;
    weighted = weighted * (up_ratio[s] * carry) + gained;
    above[s - 1] = weighted;
  }
  share[q] = sum;
}

// Z from the queries' shares in 1,024 lanes, then halves onto halves: three kernels, so that no local memory is needed
// (PoCL 3.0 corrupts its own heap where work-items fold a large local array).
kernel void lane_sums(global const double* share, int n_queries, global const int* control, global double* lanes) {
  const int lane = get_global_id(0);
  if (control[FINISHED]) return;
  double sum = 0.0;
  for (int q = lane; q < n_queries; q += QUERY_LANES) sum += share[q];
  lanes[lane] = sum;
}

// Of 1,024 lanes 32 are left: item l folds lanes l, l + 32, ..., which no other item reads.
kernel void fold_lanes(global const int* control, global double* lanes) {
  const int lane = get_global_id(0);
  if (control[FINISHED]) return;
  for (int half_lanes = QUERY_LANES / 2; half_lanes >= 32; half_lanes /= 2) {
    for (int i = lane; i < half_lanes; i += 32) lanes[i] += lanes[i + half_lanes];
  }
}

// Z, and the round's record. One work-item.
kernel void total(global double* lanes, global int* control, global double* total_at, global int* record,
                  global double* record_total, int capacity) {
  if (control[FINISHED]) return;
  for (int half_lanes = 16; half_lanes > 0; half_lanes /= 2) {
    for (int i = 0; i < half_lanes; ++i) lanes[i] += lanes[i + half_lanes];
  }
  total_at[0] = lanes[0];
  if (control[RECENTRES]) control[COMMON] = control[NEXT_COMMON];
  const int k = control[RECORDED];
  record[k] = control[FEATURE];
  record[capacity + k] = control[BIN];
  record[2 * capacity + k] = control[R];
  record[3 * capacity + k] = control[COMMON];
  record_total[k] = lanes[0];
  control[RECORDED] = k + 1;
  control[ROUND] += 1;
  if ((int)abs(control[R]) >= LARGEST_R) control[FINISHED] = 1;
}

#endif  // WITH_DOUBLES
