// The exact Top-k ListNet loss of a query and its gradient by score. Vocabulary as in kernels/lists/cpu/top_k_loss.py:
// the truth table's rows, levels, y1 (`best_label`), t0 (best score).
//
// Macros: PLACES  k

#include "room.cuh"
#include "team.cuh"

__device__ inline float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float pair_weight(const float* truth, long long n_docs, int best_label, int a, int b) {
  if (a == best_label) return truth[AFTER_BEST * n_docs + b];
  if (b == best_label) return truth[AFTER_BEST * n_docs + a];
  return truth[RATIO * n_docs + a] * truth[EXPONENTIAL * n_docs + b] +
         truth[RATIO * n_docs + b] * truth[EXPONENTIAL * n_docs + a];
}

// Row sums of w/d over all b for the rows first..last-1, one warp per two rows; returns this thread's part of the loss.
__device__ double pair_rows(const Room& room, float total, int n, int first, int last) {
  int lane = threadIdx.x % 32;
  double loss = 0.0;
  for (int a = first + 2 * (threadIdx.x / 32); a < last; a += 2 * WARPS) {
    int c = min(a + 1, last - 1);
    float da = total - room.e[a], ra = room.r[a], ea = room.big[a];
    float dc = total - room.e[c], rc = room.r[c], ec = room.big[c];
    float sum_a = 0.0f, sum_c = 0.0f, log_part = 0.0f;
    for (int b = lane; b < n; b += 32) {
      float eb = room.e[b], rb = room.r[b], bigb = room.big[b];
      float wa = b == a ? 0.0f : ra * bigb + rb * ea, wc = b == c ? 0.0f : rc * bigb + rb * ec;
      float d0 = b == a ? 1.0f : da - eb, d1 = b == c ? 1.0f : dc - eb;
      float inverse = reciprocal(d0 * d1);  // one reciprocal for two quotients
      sum_a += wa * d1 * inverse;
      sum_c += wc * d0 * inverse;
      if (b > a) log_part += wa * __logf(d0);
      if (b > c && c > a) log_part += wc * __logf(d1);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
      sum_a += __shfl_down_sync(0xffffffffu, sum_a, offset);
      sum_c += __shfl_down_sync(0xffffffffu, sum_c, offset);
    }
    loss += log_part;
    if (lane == 0) {
      room.rows[a] = sum_a;
      if (c > a) room.rows[c] = sum_c;
    }
  }
  return loss;
}

// The score gradients of documents first..last-1 are written to room.rows; returns the list's loss.
__device__ double list_gradient(const Lists& lists, const Buffers& buffers, const Room& room, int query, int team,
                                long long start, int n, int first, int last) {
  const float* scores = room.r;  // until the pairs need this memory
  const float* truth = lists.truth + start;
  const long long n_docs = lists.n_docs;
  int k = min(PLACES, max(n - 1, 1));
  for (int i = threadIdx.x; i < n; i += THREADS) room.r[i] = __ldcg(buffers.scores + start + i);
  __syncthreads();
  unsigned long long key = block_best(scores, n, ~0ull);
  int t0 = document_of(key), t1 = t0, t2 = t0;
  if (k > 1) t1 = document_of(key = block_best(scores, n, key));
  if (k > 2) t2 = document_of(block_best(scores, n, key));
  float s0 = scores[t0], s1 = scores[t1], s2 = scores[t2];
  double sums[3] = {0.0, 0.0, 0.0}, log_part = 0.0;
  for (int i = threadIdx.x; i < n; i += THREADS) {
    float e = expf(scores[i] - s0);
    room.e[i] = e;
    sums[0] += e;
    if (k > 1 && i != t0) sums[1] += expf(scores[i] - s1);
    if (k > 2 && i != t0 && i != t1) sums[2] += expf(scores[i] - s2);
    log_part -= static_cast<double>(truth[MEMBERSHIP * n_docs + i]) * (static_cast<double>(scores[i]) - s0);
  }
  block_sum(sums);
  int y1 = lists.best_label[query];
  double everywhere[4] = {0.0, 0.0, 0.0, 0.0};  // of the second place; after the best; y1's pairs
  for (int i = threadIdx.x; i < n; i += THREADS) {
    if (k > 1 && i != t0) {
      double remaining = sums[0] - room.e[i], p = truth[FIRST * n_docs + i];
      everywhere[0] += p / remaining;
      log_part += p * log(remaining);
    }
    if (k > 2 && i != t0 && i != t1) {
      double remaining = sums[1] - expf(scores[i] - s1), w = pair_weight(truth, n_docs, y1, t0, i);
      everywhere[1] += w / remaining;
      log_part += w * (log(remaining) + (static_cast<double>(s1) - s0));
    }
    if (k > 2 && y1 != t0 && i != t0 && i != y1) {
      double remaining = sums[0] - room.e[y1] - room.e[i], w = truth[AFTER_BEST * n_docs + i];
      everywhere[2] += w / remaining;
      log_part += w * log(remaining);
    }
  }
  everywhere[3] = log_part;
  block_sum(everywhere);
  double loss = everywhere[3] + log(sums[0]);
  double best_first = k > 1 ? truth[FIRST * n_docs + t0] : 0.0, two_best = 0.0;
  if (k > 1) loss += best_first * (log(sums[1]) + (static_cast<double>(s1) - s0));
  if (k > 2) {
    two_best = pair_weight(truth, n_docs, y1, t0, t1);
    loss += two_best * (log(sums[2]) + (static_cast<double>(s2) - s0));
  }
  double pairs = 0.0;  // the sum of the pairs' quotients at level 0, each pair once
  if (k > 2) {
    __syncthreads();  // the scores' last readers are done with room.r
    for (int i = threadIdx.x; i < n; i += THREADS) {
      room.r[i] = i == t0 ? 0.0f : truth[RATIO * n_docs + i];
      room.big[i] = i == t0 ? 0.0f : truth[EXPONENTIAL * n_docs + i];
      if (i == t0) room.e[i] = 0.0f;  // its pairs belong to level 1; here they have weight 0 and must not divide by 0
    }
    __syncthreads();
    double parts[2] = {0.0, pair_rows(room, static_cast<float>(sums[0]), n, first, last)};
    __syncthreads();
    for (int i = first + threadIdx.x; i < last; i += THREADS) parts[0] += room.rows[i];
    block_sum(parts);
#if TEAM > 1
    double* exchange = buffers.exchange + team * TEAM * 2;
    if (threadIdx.x == 0) {
      __stcg(exchange + 2 * team_rank(), parts[0]);
      __stcg(exchange + 2 * team_rank() + 1, parts[1]);
    }
    team_sync(buffers);
    parts[0] = parts[1] = 0.0;
    for (int block = 0; block < TEAM; ++block) {
      parts[0] += __ldcg(exchange + 2 * block);
      parts[1] += __ldcg(exchange + 2 * block + 1);
    }
#endif
    pairs = 0.5 * parts[0] + everywhere[2];
    loss += parts[1];
  }
  for (int i = first + threadIdx.x; i < last; i += THREADS) {
    double score = __ldcg(buffers.scores + start + i);
    double e = i == t0 ? 1.0 : room.e[i], expected = e / sums[0];
    if (k > 1) {
      double removed = i == t0 ? 0.0 : truth[FIRST * n_docs + i] / (sums[0] - e);
      double e1 = i == t0 ? 0.0 : expf(static_cast<float>(score) - s1);
      expected += e * (everywhere[0] - removed) + best_first * e1 / sums[1];
      if (k > 2) {
        removed = i == t0 || i == t1 ? 0.0 : pair_weight(truth, n_docs, y1, t0, i) / (sums[1] - e1);
        double e2 = i == t0 || i == t1 ? 0.0 : expf(static_cast<float>(score) - s2);
        expected += e1 * (everywhere[1] - removed) + two_best * e2 / sums[2];
        removed = i == t0 ? 0.0 : room.rows[i];
        if (y1 != t0 && i == y1) removed += everywhere[2];
        if (y1 != t0 && i != y1 && i != t0) removed += truth[AFTER_BEST * n_docs + i] / (sums[0] - room.e[y1] - e);
        expected += e * (pairs - removed);
      }
    }
    room.rows[i] = static_cast<float>(expected - truth[MEMBERSHIP * n_docs + i]);
  }
  __syncthreads();
  return loss;
}
