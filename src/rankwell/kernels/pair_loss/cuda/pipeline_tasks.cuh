// The tasks of the pipeline's warps.

#include "lane_columns.cuh"
#include "partner_sums.cuh"
#include "pipeline.cuh"

namespace {

__device__ void fill(const Pipeline& pipeline, const float4* features) {
  const int warp = threadIdx.x / kWarp - kFirstFillWarp;
  for_each_query(pipeline, [&](const Query& query, const Position& at) {
    const float4* first = features + query.start * COLUMN_GROUPS;
    int chunk = chunks_until(warp, FILL_WARPS, at.slot, pipeline.n_slots);
    Turning slot = at.slot.after(chunk, pipeline.n_slots);
    while (chunk < n_chunks(query)) {
      const int row = chunk * ROWS_PER_CHUNK;
      const float4* from = first + row * COLUMN_GROUPS;
      const unsigned bytes = min(query.n - row, ROWS_PER_CHUNK) * COLUMN_GROUPS * sizeof(float4);
      const unsigned filled = shared_address(pipeline.filled + slot.place);
      wait(pipeline.freed + slot.place, slot.turn - 1);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(filled), "r"(bytes) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       shared_address(pipeline.rows + slot.place * kChunkGroups)),
                   "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(filled)
                   : "memory");
      const Turning next = slot.after(1, pipeline.n_slots);
      const int step = chunks_until(warp, FILL_WARPS, next, pipeline.n_slots);
      slot = next.after(step, pipeline.n_slots);
      chunk += 1 + step;
    }
  });
}

// The total over lanes of each of 8 numbers, of which lanes 4 k ... 4 k + 3 get the k-th: at each step a lane passes on
// half of its numbers, and keeps the sums of the others.
__device__ float sum_over_lanes(float (&x)[kRunRows]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int n = kRunRows / 2, step = kWarp / 2; n > 0; n /= 2, step /= 2) {
    const bool is_upper = lane & step;
#pragma unroll
    for (int k = 0; k < n; ++k) {
      const float handed = is_upper ? x[k] : x[k + n], kept = is_upper ? x[k + n] : x[k];
      x[k] = kept + __shfl_xor_sync(kAllLanes, handed, step);
    }
  }
  x[0] += __shfl_xor_sync(kAllLanes, x[0], 2);
  return x[0] + __shfl_xor_sync(kAllLanes, x[0], 1);
}

// visit(first row, number of rows, whether these are kRunRows) for runs of a chunk's rows; the last is a constant if
// it is true, so that a loop over a whole run needs no comparisons.
template <typename Visit>
__device__ void for_each_run(int n_rows, Visit visit) {
  int row = 0;
  for (; row + kRunRows <= n_rows; row += kRunRows) visit(row, kRunRows, true);
  if (row < n_rows) visit(row, n_rows - row, false);
}

// (x - centre) . vector of a chunk's rows by one warp.
__device__ void multiply_chunk(const float* rows, int n_rows, const LaneColumns<float>& vector,
                               const LaneColumns<float>& centre, const Factors& products, int first_row) {
  const int lane = threadIdx.x % kWarp;
  for_each_run(n_rows, [&](int start, int n_run, bool is_whole) {
    float totals[kRunRows];
#pragma unroll
    for (int k = 0; k < kRunRows; ++k) {
      const int row = start + (is_whole ? k : min(k, n_run - 1));
      float total = 0.0f;
      centred(rows + row * kColumns, centre).for_each_with(vector, [&](float x, float v) { total += x * v; });
      totals[k] = total;
    }
    const float product = sum_over_lanes(totals);
    if (lane % 4 == 0 && lane / 4 < n_run) products[first_row + start + lane / 4] = product;
  });
}

__device__ void multiply(const Pipeline& pipeline, const LaneColumns<float>& vector, const LaneColumns<float>& centre,
                         double* scratch) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp - kFirstMultiplyWarp, n_slots = pipeline.n_slots;
  for_each_query(pipeline, [&](const Query& query, const Position& at) {
    const Factors products = factors_of(pipeline, query, at, scratch);
    const int n_passing = pipeline.n_passing(query), end_chunk = n_chunks(query);
    int chunk = chunks_until(warp, MULTIPLY_WARPS, at.slot, n_slots);
    Turning slot = at.slot.after(chunk, n_slots);
    while (chunk < end_chunk) {
      const int row = chunk * ROWS_PER_CHUNK;
      wait(pipeline.filled + slot.place, slot.turn);
      multiply_chunk(pipeline.chunk(slot), min(ROWS_PER_CHUNK, query.n - row), vector, centre, products, row);
      __syncwarp();
      if (chunk < n_passing && lane == 0) arrive(pipeline.freed + slot.place);
      const Turning next = slot.after(1, n_slots);
      const int step = chunks_until(warp, MULTIPLY_WARPS, next, n_slots);
      slot = next.after(step, n_slots);
      chunk += 1 + step;
    }
    __syncwarp();
    if (lane == 0) arrive(pipeline.multiplied + at.turn.place);
  });
}

// The data of documents that the sums need, by place.
struct Documents {
  const Place* places;
  const double* degree;
  const int* ranks;
  const double* weights;  // by row; null if all are 1
};

__device__ void sum(const Pipeline& pipeline, const Documents& documents, double* shared, double* scratch) {
  const Team team{static_cast<int>(threadIdx.x) - kFirstSumWarp * kWarp, SUM_WARPS * kWarp, kSumBarrier};
  if (pipeline.first_query == pipeline.last_query) return;
  // The next query's places are prefetched while this one is summed, and loaded as soon as registers are free.
  int number = pipeline.first_query;
  long long next_start = pipeline.queries[number].start;
  int next_n = pipeline.queries[number].n;
  OwnPlaces next;
  next.load(team, documents.places + next_start, documents.degree + next_start, next_n);
  for_each_query(pipeline, [&](const Query& query, const Position& at) {
    const Pairs pairs{documents.places + query.start,
                      documents.degree + query.start,
                      documents.ranks + query.ranks,
                      query.n,
                      query.n_levels,
                      next};
    number = min(number + 1, pipeline.last_query - 1);
    next_start = pipeline.queries[number].start;
    next_n = pipeline.queries[number].n;
    const Workspace work = workspace_at(query.scratch >= 0 ? scratch + query.scratch : shared, query.n);
    const Factors factors = factors_of(pipeline, query, at, scratch);
    const auto weight = [&](int row) { return documents.weights ? documents.weights[query.start + row] : 1.0; };
    wait(pipeline.multiplied + at.turn.place, at.turn.turn);
    OwnPlaces::prefetch(team, documents.places + next_start, documents.degree + next_start, next_n);
    sum_partners(
        team, pairs, work, [&](int, const Place& document) { return factors[document.row] * weight(document.row); },
        [&](int, const Place& document, double degree, double above, double below) {
          float& factor = factors[document.row];
          const double difference = degree * factor - (above + below);
          factor = static_cast<float>(query.weight * weight(document.row) * difference);
        });
    team.sync();
    if (team.thread == 0) arrive(pipeline.summed + at.turn.place);
    next.load(team, documents.places + next_start, documents.degree + next_start, next_n);
  });
}

// Adds consecutive rows, less the centre, times their factors to the total.
__device__ void add_rows(const float* rows, int n_rows, const LaneColumns<float>& centre, const Factors& factors,
                         int first_row, LaneColumns<double>& total) {
  const int lane = threadIdx.x % kWarp;
  for_each_run(n_rows, [&](int start, int n_run, bool is_whole) {
    const float own_factor = lane < n_run ? factors[first_row + start + lane] : 0.0f;
    LaneColumns<float> run{};
#pragma unroll
    for (int k = 0; k < kRunRows; ++k) {
      const int row = start + (is_whole ? k : min(k, n_run - 1));
      const float factor = __shfl_sync(kAllLanes, own_factor, k);
      run.for_each_with(centred(rows + row * kColumns, centre), [&](float& sum, float x) { sum += factor * x; });
    }
    total.for_each_with(run, [](double& sum, float part) { sum += part; });
  });
}

__device__ LaneColumns<double> add(const Pipeline& pipeline, const float4* features, const LaneColumns<float>& centre,
                                   double* scratch) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, n_slots = pipeline.n_slots;
  LaneColumns<double> total{};
  for_each_query(pipeline, [&](const Query& query, const Position& at) {
    const Factors factors = factors_of(pipeline, query, at, scratch);
    const int n_passing = pipeline.n_passing(query), end_chunk = n_chunks(query);
    wait(pipeline.summed + at.turn.place, at.turn.turn);
    Turning slot = at.slot.after(n_passing, n_slots);
    int chunk = n_passing + chunks_until(warp, ADD_WARPS, slot, n_slots);
    slot = slot.after(chunk - n_passing, n_slots);
    while (chunk < end_chunk) {
      const int row = chunk * ROWS_PER_CHUNK;
      add_rows(pipeline.chunk(slot), min(ROWS_PER_CHUNK, query.n - row), centre, factors, row, total);
      __syncwarp();
      if (lane == 0) arrive(pipeline.freed + slot.place);
      const Turning next = slot.after(1, n_slots);
      const int step = chunks_until(warp, ADD_WARPS, next, n_slots);
      slot = next.after(step, n_slots);
      chunk += 1 + step;
    }
    const float* first = reinterpret_cast<const float*>(features + query.start * COLUMN_GROUPS);
    for (int passed = warp; passed < n_passing; passed += ADD_WARPS)
      add_rows(first + passed * ROWS_PER_CHUNK * kColumns, ROWS_PER_CHUNK, centre, factors, passed * ROWS_PER_CHUNK,
               total);
  });
  return total;
}

}  // namespace
