// The columns of X that a lane works on; a warp works on a row.
//
// Macros: COLUMN_GROUPS  groups of 4 features in a row of X, the last padded with zeros

#include "team.cuh"

namespace {

// Rows that a warp multiplies, or adds in float32, together.
constexpr int kRunRows = 8;
// A warp works on a row, a lane on these columns: groups of 4 as long as all 32 lanes have one, then single ones.
constexpr int kColumns = 4 * COLUMN_GROUPS;
constexpr int kQuads = kColumns / (4 * kWarp);
constexpr int kSingles = (kColumns - 4 * kWarp * kQuads + kWarp - 1) / kWarp;

// One number per column of the lane.
template <typename T>
struct LaneColumns {
  T quads[kQuads + 1][4], singles[kSingles + 1];  // one more than needed, because there may be none

  static __device__ int column(int single) { return (4 * kQuads + single) * kWarp + threadIdx.x % kWarp; }

  // visit(number, column) for each number.
  template <typename Visit>
  __device__ void for_each(Visit visit) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int k = 0; k < 4 * kQuads; ++k) visit(quads[k / 4][k % 4], (k / 4 * kWarp + lane) * 4 + k % 4);
#pragma unroll
    for (int k = 0; k < kSingles; ++k)
      if (column(k) < kColumns) visit(singles[k], column(k));
  }

  // visit(number, number of the other) for each number.
  template <typename Other, typename Visit>
  __device__ void for_each_with(const LaneColumns<Other>& other, Visit visit) {
#pragma unroll
    for (int k = 0; k < 4 * kQuads; ++k) visit(quads[k / 4][k % 4], other.quads[k / 4][k % 4]);
#pragma unroll
    for (int k = 0; k < kSingles; ++k) visit(singles[k], other.singles[k]);
  }
};

// A row of X less the centre.
__device__ LaneColumns<float> centred(const float* row, const LaneColumns<float>& centre) {
  LaneColumns<float> x;
#pragma unroll
  for (int k = 0; k < kQuads; ++k) {
    const float4 quad = reinterpret_cast<const float4*>(row)[k * kWarp + threadIdx.x % kWarp];
    x.quads[k][0] = quad.x;
    x.quads[k][1] = quad.y;
    x.quads[k][2] = quad.z;
    x.quads[k][3] = quad.w;
  }
#pragma unroll
  for (int k = 0; k < kSingles; ++k) x.singles[k] = x.column(k) < kColumns ? row[x.column(k)] : 0.0f;
  x.for_each_with(centre, [](float& own, float middle) { own -= middle; });
  return x;
}

}  // namespace
