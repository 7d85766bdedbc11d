// Training networks over lists: forward, exact Top-k ListNet loss and backward of a query, fused in one kernel.
//
// A query belongs to a team of TEAM blocks, which share its documents. One team processes all queries of an epoch and
// makes an optimiser step after each, all in one launch: `train_queries`. With TEAM == 1 every block takes one query of
// a batch and stores its gradient: `batch_gradients`, then `batch_step`. A team is a thread block cluster if the
// device has them (CLUSTER), else blocks that were launched cooperatively and synchronise by a counter in device
// memory: they do the same additions in the same order.
//
// All sums are in a fixed order, so the same inputs give the same bits.

#include "network.cuh"
#include "optimizer.cuh"
#include "top_k_loss.cuh"

// One query by this block's team: its gradient (this block's share) is in room.gradient afterwards.
__device__ double query_pass(const Lists& lists, const Buffers& buffers, const Room& room, int query, int team) {
  long long start = lists.query_ptr[query];
  int n = static_cast<int>(lists.query_ptr[query + 1] - start);
  float weight = lists.weights[query];
  if (n < 2 || weight == 0.0f) {
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) room.gradient[p] = 0.0f;
    __syncthreads();
    return 0.0;
  }
  int rank = team_rank();
  int first = static_cast<int>(static_cast<long long>(n) * rank / TEAM);
  int last = static_cast<int>(static_cast<long long>(n) * (rank + 1) / TEAM);
  forward(lists, buffers, room, start, first, last);
  team_sync(buffers);
  double loss = list_gradient(lists, buffers, room, query, team, start, n, first, last);
  backward(lists, buffers, room, start, first, last, weight);
  return weight * loss;
}

#if TEAM > 1
#if CLUSTER
#define TEAM_SHAPE __cluster_dims__(TEAM, 1, 1)
#else
#define TEAM_SHAPE
#endif

// Many queries with one step each: one team, one launch. `first` and `second` are the optimiser's memory; the losses
// are added to `loss`, in order, so that several launches give the same bits as one.
extern "C" __global__ void TEAM_SHAPE __launch_bounds__(THREADS)
    train_queries(Lists lists, Buffers buffers, Optimizer optimizer, const long long* order, int n_steps,
                  long long steps_before, float* parameters, float* first, float* second, int most_docs, double* loss) {
  extern __shared__ float memory[];
  Room room = carve(memory, buffers, most_docs);
  for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) {
    room.parameters[p] = parameters[p];
    room.first[p] = first[p];
    room.second[p] = second[p];
  }
  __syncthreads();
  double total = *loss;
  for (int step = 0; step < n_steps; ++step) {
    total += query_pass(lists, buffers, room, static_cast<int>(order[step]), 0);
    // Two sets of partial gradients alternate: a block may write the next one while another block still reads this one.
    float* shares = buffers.partial + (step % 2) * TEAM * PARAMETERS;
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS)
      __stcg(shares + team_rank() * PARAMETERS + p, room.gradient[p]);
    team_sync(buffers);
    double corrections[2];
    adam_corrections(optimizer, steps_before + step + 1, corrections);
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) {
      float gradient = 0.0f;
      for (int block = 0; block < TEAM; ++block) gradient += __ldcg(shares + block * PARAMETERS + p);
      optimizer_step(optimizer, corrections, gradient, room.parameters[p], room.first[p], room.second[p]);
    }
    __syncthreads();
  }
  if (team_rank() == 0) {
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) {
      parameters[p] = room.parameters[p];
      first[p] = room.first[p];
      second[p] = room.second[p];
    }
    if (threadIdx.x == 0) *loss = total;
  }
  team_sync(buffers);
}
#else
// The gradients of a batch's queries, one block per query: partial[block], and their losses. Two blocks must fit on a
// multiprocessor: with the registers that one alone would take, Top-3 is a fifth slower on an H200.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    batch_gradients(Lists lists, Buffers buffers, const long long* order, const float* parameters, int most_docs,
                    double* losses) {
  extern __shared__ float memory[];
  Room room = carve(memory, buffers, most_docs);
  hold_parameters(room, parameters);
  double loss = query_pass(lists, buffers, room, static_cast<int>(order[blockIdx.x]), blockIdx.x);
  float* own = buffers.partial + static_cast<long long>(blockIdx.x) * PARAMETERS;
  for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) own[p] = room.gradient[p];
  if (threadIdx.x == 0) losses[blockIdx.x] += loss;
}

// The step of one batch: one warp per parameter adds the queries' gradients in a fixed order.
extern "C" __global__ void batch_step(const float* partial, Optimizer optimizer, int n_queries, long long step,
                                      float* parameters, float* first, float* second) {
  int p = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (p >= PARAMETERS) return;
  float gradient = 0.0f;
  for (int query = lane; query < n_queries; query += 32)
    gradient += partial[static_cast<long long>(query) * PARAMETERS + p];
  for (int offset = 16; offset > 0; offset >>= 1) gradient += __shfl_down_sync(0xffffffffu, gradient, offset);
  if (lane != 0) return;
  double corrections[2];
  adam_corrections(optimizer, step, corrections);
  optimizer_step(optimizer, corrections, gradient / n_queries, parameters[p], first[p], second[p]);
}
#endif

// The network's scores of all documents.
extern "C" __global__ void __launch_bounds__(THREADS)
    score_documents(Lists lists, Buffers buffers, const float* parameters) {
  extern __shared__ float memory[];
  Room room = carve(memory, buffers, 0);
  hold_parameters(room, parameters);
  for (long long start = static_cast<long long>(blockIdx.x) * THREADS; start < lists.n_docs;
       start += static_cast<long long>(gridDim.x) * THREADS) {
    long long docs = lists.n_docs - start;
    forward(lists, buffers, room, start, 0, docs < THREADS ? static_cast<int>(docs) : THREADS);
  }
}
