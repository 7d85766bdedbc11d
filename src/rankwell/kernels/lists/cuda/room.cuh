// Where a block keeps its data.
//
// Macros: TILE  documents per step of the weights' gradient
//         SHARED_DOCUMENTS, SHARED_PARAMETERS, SHARED_TILE  1 if these fit in shared memory (`placement.py`)

#include "lists.cuh"

// The data of a block: in shared memory, or in its part of the workspace.
struct Room {
  float *parameters, *gradient, *first, *second;  // first, second: the optimiser's memory
  float* e;                                       // level 0 of the scores
  float* r;
  float* big;     // E
  float* rows;    // the pairs' row sums, later score gradients
  float* tile_x;  // if it fits in shared memory
  float* tile_delta;
  float* tile_hidden;
  float* tile_slope;
};

// By parameter: itself and its gradient, and the optimiser's memory where a block keeps that from step to step.
constexpr int OF_PARAMETER = TEAM > 1 ? 4 : 2;

// The next `size` numbers of `from`.
__device__ inline float* take(float*& from, int size) {
  float* taken = from;
  from += size;
  return taken;
}

__device__ Room carve(float* shared, const Buffers& buffers, int most_docs) {
  const long long own_floats =
      (SHARED_PARAMETERS ? 0 : OF_PARAMETER * PARAMETERS) + (SHARED_DOCUMENTS ? 0 : 4LL * most_docs);
  float* own = buffers.workspace + blockIdx.x * own_floats;
  float*& for_parameters = SHARED_PARAMETERS ? shared : own;
  float*& for_documents = SHARED_DOCUMENTS ? shared : own;
  Room room;
  room.parameters = take(for_parameters, PARAMETERS);
  room.gradient = take(for_parameters, PARAMETERS);
  room.first = TEAM > 1 ? take(for_parameters, PARAMETERS) : nullptr;
  room.second = TEAM > 1 ? take(for_parameters, PARAMETERS) : nullptr;
  room.e = take(for_documents, most_docs);
  room.r = take(for_documents, most_docs);
  room.big = take(for_documents, most_docs);
  room.rows = take(for_documents, most_docs);
  room.tile_x = SHARED_TILE ? take(shared, TILE * FEATURES) : nullptr;
  room.tile_delta = take(shared, TILE * WIDTH);
  room.tile_hidden = take(shared, TILE * WIDTH);
  room.tile_slope = take(shared, TILE);
  return room;
}

// Constant parameters: copied to shared memory, or read where they are.
__device__ void hold_parameters(Room& room, const float* parameters) {
#if SHARED_PARAMETERS
  for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) room.parameters[p] = parameters[p];
  __syncthreads();
#else
  room.parameters = const_cast<float*>(parameters);
#endif
}
