// The network: forward and backward over a query's documents.
//
// Macros: HIDDEN_ACTIVATION, OUTPUT_ACTIVATION  one of `Activation`

#include "room.cuh"

__device__ inline float activate(float x, int activation) {
  if (activation == SIGMOID) return 1.0f / (1.0f + expf(-x));
  if (activation == RELU) return fmaxf(x, 0.0f);
  if (activation == TANH) return tanhf(x);
  return x;
}

__device__ inline float slope(float output, int activation) {
  if (activation == SIGMOID) return output * (1.0f - output);
  if (activation == RELU) return output > 0.0f ? 1.0f : 0.0f;
  if (activation == TANH) return 1.0f - output * output;
  return 1.0f;
}

// Equation 2.5 for documents first..last-1 of the query that starts at row `start`; scores and hidden outputs are
// written to memory.
__device__ void forward(const Lists& lists, const Buffers& buffers, const Room& room, long long start, int first,
                        int last) {
  for (int d = first + threadIdx.x; d < last; d += THREADS) {
    float sums[WIDTH];
    for (int u = 0; u < WIDTH; ++u) sums[u] = room.parameters[FIRST_BIAS + u];
#pragma unroll 2
    for (int f = 0; f < FEATURES; ++f) {
      float value = stored_feature(lists, start + d, f);
      for (int u = 0; u < WIDTH; ++u) sums[u] += value * room.parameters[f * WIDTH + u];
    }
    float score = sums[0];
    if (UNITS > 0) {
      score = room.parameters[PARAMETERS - 1];
      for (int u = 0; u < UNITS; ++u) {
        float output = activate(sums[u], HIDDEN_ACTIVATION);
        buffers.hidden[(start + d) * UNITS + u] = output;
        score += output * room.parameters[OUTPUT + u];
      }
    }
    __stcg(buffers.scores + start + d, activate(score, OUTPUT_ACTIVATION));
  }
}

// The parameters' gradient over documents first..last-1 is written to room.gradient.
__device__ void backward(const Lists& lists, const Buffers& buffers, const Room& room, long long start, int first,
                         int last, float weight) {
  for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) room.gradient[p] = 0.0f;
  for (int tile = first; tile < last; tile += TILE) {
    int docs = min(TILE, last - tile);
    __syncthreads();
    for (int i = threadIdx.x; SHARED_TILE && i < docs * FEATURES; i += THREADS)
      room.tile_x[i] = stored_feature(lists, start + tile + i / FEATURES, i % FEATURES);
    for (int d = threadIdx.x; d < docs; d += THREADS) {
      float score = __ldcg(buffers.scores + start + tile + d);
      room.tile_slope[d] = weight * room.rows[tile + d] * slope(score, OUTPUT_ACTIVATION);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < docs * WIDTH; i += THREADS) {
      float delta = room.tile_slope[i / WIDTH];
      if (UNITS > 0) {
        float output = buffers.hidden[(start + tile) * UNITS + i];
        room.tile_hidden[i] = output;
        delta *= room.parameters[OUTPUT + i % WIDTH] * slope(output, HIDDEN_ACTIVATION);
      }
      room.tile_delta[i] = delta;
    }
    __syncthreads();
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) {
      float sum = room.gradient[p];
      if (p < FIRST_BIAS) {
        int f = p / WIDTH, u = p % WIDTH;
        for (int d = 0; d < docs; ++d) {
          float x = SHARED_TILE ? room.tile_x[d * FEATURES + f] : stored_feature(lists, start + tile + d, f);
          sum += x * room.tile_delta[d * WIDTH + u];
        }
      } else if (p < OUTPUT) {
        for (int d = 0; d < docs; ++d) sum += room.tile_delta[d * WIDTH + p - FIRST_BIAS];
      } else if (p < PARAMETERS - 1) {
        for (int d = 0; d < docs; ++d) sum += room.tile_hidden[d * WIDTH + p - OUTPUT] * room.tile_slope[d];
      } else {
        for (int d = 0; d < docs; ++d) sum += room.tile_slope[d];
      }
      room.gradient[p] = sum;
    }
  }
  __syncthreads();
}
