// X passes once through a ring of chunks in shared memory.
//
// A block processes its queries one after another. Its warps form a pipeline, each with one task:
//
//   fill      copies a query's rows into the ring; a chunk holds rows of one query
//   multiply  rows times the vector
//   sum       the sums over partners, and from them the factor of each row
//   add       rows times their factors to the block's total; then the chunk's slot is free
//
// So memory is read all the time, while queries already loaded are multiplied, summed and added. Of a query that does
// not fit in the ring, the chunks before the last n_slots ones are discarded once they are multiplied; their rows are
// read a second time, to be added.
//
// Macros: COLUMN_GROUPS   groups of 4 features in a row of X, the last padded with zeros
//         ROWS_PER_CHUNK  rows that are copied into shared memory together
//         FILL_WARPS, MULTIPLY_WARPS, SUM_WARPS, ADD_WARPS  warps of a block that have these tasks

#include "pairs.cuh"

namespace {

constexpr int kFirstMultiplyWarp = ADD_WARPS, kFirstSumWarp = kFirstMultiplyWarp + MULTIPLY_WARPS;
constexpr int kFirstFillWarp = kFirstSumWarp + SUM_WARPS;
constexpr int kSumBarrier = 1;
constexpr int kChunkGroups = ROWS_PER_CHUNK * COLUMN_GROUPS;

__device__ int n_chunks(const Query& query) { return (query.n + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK; }

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Wait for phase `turn` of a barrier. A thread sleeps until then, or for 10 ms, and uses no issue slots meanwhile.
__device__ void wait(unsigned long long* barrier, unsigned turn) {
  asm volatile(
      "{\n .reg .pred done;\n"
      "again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, %2;\n @!done bra again;\n}\n" ::"r"(
          shared_address(barrier)),
      "r"(turn & 1), "r"(10000000)
      : "memory");
}

// A place in a circular buffer, and how often it has wrapped around.
struct Turning {
  int place;
  unsigned turn;

  __device__ Turning after(int n, int size) const {
    Turning next{place + n, turn};
    while (next.place >= size) {
      next.place -= size;
      ++next.turn;
    }
    return next;
  }
};

// Shared by the warps of a block. A chunk is in a slot, a product (later a factor) in the ring of factors. A barrier of
// a slot completes once for each chunk, one of a query once for each query that uses it; there are more of the latter
// than queries that any two warps can be apart. A thread that waits for a phase has waited for the previous one: a
// barrier distinguishes only odd and even ones.
struct Pipeline {
  float4* rows;                             // n_slots chunks
  unsigned long long *filled, *freed;       // n_slots each
  unsigned long long *multiplied, *summed;  // n_turns each
  float* factors;                           // n_factors
  int n_slots, n_factors;
  const Query* queries;
  int first_query, last_query;

  __device__ int n_turns() const { return n_slots + 2 * MULTIPLY_WARPS; }

  __device__ void init() const {
    for (int k = threadIdx.x; k < 2 * (n_slots + n_turns()); k += blockDim.x) {
      unsigned long long* barrier = filled + k;
      const int arrivals = barrier >= multiplied && barrier < summed ? MULTIPLY_WARPS : 1;
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }

  __device__ const float* chunk(const Turning& slot) const {
    return reinterpret_cast<const float*>(rows + slot.place * kChunkGroups);
  }

  // Chunks of a query that are discarded before they are added.
  __device__ int n_passing(const Query& query) const { return max(0, n_chunks(query) - n_slots); }
};

// Where the parts of a query are: its first chunk, its barriers, its factors.
struct Position {
  Turning slot, turn, factor;
};

// visit(query, position) for each of the block's queries. The next one is loaded meanwhile.
template <typename Visit>
__device__ void for_each_query(const Pipeline& pipeline, Visit visit) {
  if (pipeline.first_query == pipeline.last_query) return;
  Position at{};
  Query ahead = pipeline.queries[pipeline.first_query];
  for (int number = pipeline.first_query; number < pipeline.last_query; ++number) {
    const Query query = ahead;
    ahead = pipeline.queries[min(number + 1, pipeline.last_query - 1)];
    visit(query, at);
    at.slot = at.slot.after(n_chunks(query), pipeline.n_slots);
    at.turn = at.turn.after(1, pipeline.n_turns());
    if (query.scratch < 0) at.factor = at.factor.after(query.n, pipeline.n_factors);
  }
}

// Products, later factors, of a query's rows.
struct Factors {
  float* base;
  int first, end;

  __device__ float& operator[](int row) const { return base[first + row < end ? first + row : first + row - end]; }
};

__device__ Factors factors_of(const Pipeline& pipeline, const Query& query, const Position& at, double* scratch) {
  if (query.scratch >= 0) {
    double* products = workspace_at(scratch + query.scratch, query.n).products;
    return {reinterpret_cast<float*>(products), 0, 0x7fffffff};
  }
  return {pipeline.factors, at.factor.place, pipeline.n_factors};
}

// A warp of n_warps with one task works on slots warp, + n_warps, ...: how many chunks from `slot` on come before its
// next.
__device__ int chunks_until(int warp, int n_warps, const Turning& slot, int n_slots) {
  const int n_before = (warp + n_warps - slot.place % n_warps) % n_warps;
  return slot.place + n_before < n_slots ? n_before : n_slots - slot.place + warp;
}

}  // namespace
