// Training networks over lists: forward, exact Top-k ListNet loss and backward of a query, fused in one kernel.
//
// A query belongs to a team of TEAM blocks, which share its documents. One team walks through an epoch of queries and
// makes an optimiser step after each, all in one launch: `train_queries`. With TEAM == 1 every block takes one query of a
// batch and leaves its gradient: `batch_gradients`, then `batch_step`. A team is a thread block cluster where the device
// has them (CLUSTER), else blocks that were launched together (cooperatively) and meet at a counter in device memory:
// they do the same additions in the same order.
//
// Vocabulary as in kernels/lists/cpu/top_k_loss.py: the truth table's rows, levels, y1 (`best_label`), t0 (best score).
// Everything that is summed is summed in a fixed order, so the same inputs give the same bits.
//
// Defined at compile time: TEAM, CLUSTER (0 or 1), THREADS, TILE, FEATURES, UNITS (0: linear), PLACES (k),
// HIDDEN_ACTIVATION and OUTPUT_ACTIVATION (0 identity, 1 sigmoid, 2 relu, 3 tanh), ADAM (0 or 1), FEATURE_BITS (32, 16 or
// 8), SHARED_DOCUMENTS, SHARED_PARAMETERS and SHARED_TILE (0 or 1, see `placement.py`).

#ifndef TEAM
#define TEAM 8
#define CLUSTER 0
#define THREADS 512
#define TILE 64
#define SHARED_DOCUMENTS 1
#define SHARED_PARAMETERS 1
#define SHARED_TILE 1
#define FEATURES 46
#define UNITS 15
#define PLACES 3
#define HIDDEN_ACTIVATION 1
#define OUTPUT_ACTIVATION 1
#define ADAM 0
#define FEATURE_BITS 32
#endif

#if FEATURE_BITS == 16
#include <cuda_fp16.h>
typedef __half feature_t;
#elif FEATURE_BITS == 8
typedef signed char feature_t;
#else
typedef float feature_t;
#endif

constexpr int WIDTH = UNITS > 0 ? UNITS : 1;  // what the first layer puts out
constexpr int FIRST_BIAS = FEATURES * WIDTH;
constexpr int OUTPUT = FIRST_BIAS + WIDTH;  // the output unit's weights, where there is a hidden layer
constexpr int PARAMETERS = UNITS > 0 ? OUTPUT + UNITS + 1 : FEATURES + 1;
constexpr int WARPS = THREADS / 32;
enum TruthRow { MEMBERSHIP, FIRST, RATIO, EXPONENTIAL, AFTER_BEST };

struct Lists {
    const feature_t* features;    // (n_docs, FEATURES)
    const float* feature_scale;   // (FEATURES,): what a stored feature is multiplied by
    const long long* query_ptr;
    const float* truth;           // (5, n_docs)
    const int* best_label;        // (n_queries,), within the query
    const float* weights;         // (n_queries,)
    long long n_docs;
};

struct Buffers {
    float* scores;     // (n_docs,)
    float* hidden;     // (n_docs, UNITS)
    double* exchange;  // (teams, TEAM, 2)
    float* partial;    // (teams, TEAM, PARAMETERS)
    float* workspace;  // (blocks, what has no room in shared memory)
    unsigned* arrivals;  // how often blocks came to meet their team; never set back
};

// Kernels take plain pointers and numbers; these put them together.
#define LISTS                                                                                                   \
    const feature_t *features, const float *feature_scale, const long long *query_ptr, const float *truth,      \
        const int *best_label, const float *weights, long long n_docs
#define BUFFERS float *scores, float *hidden, double *exchange, float *partial, float *workspace, unsigned *arrivals
#define OPTIMIZER float rate, float momentum, float beta1, float beta2, float epsilon, float weight_decay
#define MAKE_LISTS Lists lists = {features, feature_scale, query_ptr, truth, best_label, weights, n_docs}
#define MAKE_BUFFERS Buffers buffers = {scores, hidden, exchange, partial, workspace, arrivals}
#define MAKE_OPTIMIZER Optimizer optimizer = {rate, momentum, beta1, beta2, epsilon, weight_decay}

struct Optimizer {
    float rate, momentum, beta1, beta2, epsilon, weight_decay;
};

// What a block works on: in shared memory, or in its part of the workspace.
struct Room {
    float *parameters, *gradient, *first, *second;  // first, second: the optimiser's memory
    float* e;     // level 0 of the scores
    float* r;
    float* big;   // E
    float* rows;  // score gradients, and the pairs' row sums before
    float* tile_x;  // where there is room in shared memory
    float* tile_delta;
    float* tile_hidden;
    float* tile_slope;
};

// The blocks of the team are all here, and see what the others wrote.
__device__ inline void team_sync(const Buffers& buffers) {
#if TEAM == 1
    __syncthreads();
#elif CLUSTER
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        // The count may wrap around: TEAM divides 2^32, and differences are right all the same.
        const unsigned goal = (atomicAdd(buffers.arrivals, 1u) / TEAM + 1) * TEAM;
        while (static_cast<int>(*static_cast<volatile unsigned*>(buffers.arrivals) - goal) < 0) {
        }
        __threadfence();
    }
    __syncthreads();
#endif
}

__device__ inline unsigned team_rank() {
    return TEAM == 1 ? 0 : blockIdx.x;  // there is one team of more than one block
}

__device__ inline float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ inline float as_float(feature_t x) {
#if FEATURE_BITS == 16
    return __half2float(x);
#else
    return static_cast<float>(x);
#endif
}

__device__ inline float stored_feature(const Lists& lists, long long row, int feature) {
    return as_float(lists.features[row * FEATURES + feature]) * lists.feature_scale[feature];
}

__device__ inline float activate(float x, int activation) {
    if (activation == 1) return 1.0f / (1.0f + expf(-x));
    if (activation == 2) return fmaxf(x, 0.0f);
    if (activation == 3) return tanhf(x);
    return x;
}

__device__ inline float slope(float output, int activation) {
    if (activation == 1) return output * (1.0f - output);
    if (activation == 2) return output > 0.0f ? 1.0f : 0.0f;
    if (activation == 3) return 1.0f - output * output;
    return 1.0f;
}

// The sums over the block of K values a thread, the same in every thread.
template <int K>
__device__ void block_sum(double (&values)[K]) {
    __shared__ double warp_sums[WARPS][4];
    for (int k = 0; k < K; ++k)
        for (int offset = 16; offset > 0; offset >>= 1) values[k] += __shfl_down_sync(0xffffffffu, values[k], offset);
    if (threadIdx.x % 32 == 0)
        for (int k = 0; k < K; ++k) warp_sums[threadIdx.x / 32][k] = values[k];
    __syncthreads();
    for (int k = 0; k < K; ++k) {
        values[k] = 0.0;
        for (int warp = 0; warp < WARPS; ++warp) values[k] += warp_sums[warp][k];
    }
    __syncthreads();
}

// The best document with a key below `limit`: the largest score, of equal ones the first. A key is the score's bits in an
// order that compares as unsigned, over the document's number counted backwards.
__device__ unsigned long long block_best(const float* scores, int n, unsigned long long limit) {
    __shared__ unsigned long long warp_best[WARPS];
    unsigned long long best = 0;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        unsigned bits = __float_as_uint(scores[i]);
        bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        unsigned long long key = (static_cast<unsigned long long>(bits) << 32) | (0xffffffffu - i);
        if (key < limit && key > best) best = key;
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        unsigned long long other = __shfl_down_sync(0xffffffffu, best, offset);
        best = other > best ? other : best;
    }
    if (threadIdx.x % 32 == 0) warp_best[threadIdx.x / 32] = best;
    __syncthreads();
    best = 0;
    for (int warp = 0; warp < WARPS; ++warp) best = warp_best[warp] > best ? warp_best[warp] : best;
    __syncthreads();
    return best;
}

__device__ inline int document_of(unsigned long long key) { return 0xffffffffu - static_cast<unsigned>(key); }

// Equation 2.5 for documents first..last-1 of the query that starts at row `start`; scores and hidden outputs go to memory.
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

__device__ inline float pair_weight(const float* truth, long long n_docs, int best_label, int a, int b) {
    if (a == best_label) return truth[AFTER_BEST * n_docs + b];
    if (b == best_label) return truth[AFTER_BEST * n_docs + a];
    return truth[RATIO * n_docs + a] * truth[EXPONENTIAL * n_docs + b] +
           truth[RATIO * n_docs + b] * truth[EXPONENTIAL * n_docs + a];
}

// Row sums of w/d over all b for the rows first..last-1, a warp for two rows; returns this thread's part of the loss.
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

// The score gradients of documents first..last-1 go to room.rows; returns the list's loss.
__device__ double list_gradient(const Lists& lists, const Buffers& buffers, const Room& room, int query, int team,
                                long long start, int n, int first, int last) {
    const float* scores = room.r;  // until the pairs need the place
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
            if (i == t0) room.e[i] = 0.0f;  // its pairs belong to level 1; here they weigh 0 and must not divide by 0
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
                if (y1 != t0 && i != y1 && i != t0)
                    removed += truth[AFTER_BEST * n_docs + i] / (sums[0] - room.e[y1] - e);
                expected += e * (pairs - removed);
            }
        }
        room.rows[i] = static_cast<float>(expected - truth[MEMBERSHIP * n_docs + i]);
    }
    __syncthreads();
    return loss;
}

// The parameters' gradient over documents first..last-1 goes to room.gradient.
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

__device__ inline void optimizer_step(const Optimizer& optimizer, double corrections[2], float gradient, float& parameter,
                                      float& first, float& second) {
#if ADAM
    first = optimizer.beta1 * first + (1.0f - optimizer.beta1) * gradient;
    second = optimizer.beta2 * second + (1.0f - optimizer.beta2) * gradient * gradient;
    float scale = static_cast<float>(optimizer.rate * corrections[0]);
    float root = sqrtf(second * static_cast<float>(corrections[1])) + optimizer.epsilon;
    parameter -= scale * first / root;
    parameter -= optimizer.rate * optimizer.weight_decay * parameter;
#else
    first = optimizer.momentum * first + gradient;
    parameter -= optimizer.rate * first + optimizer.rate * optimizer.weight_decay * parameter;
#endif
}

__device__ inline void adam_corrections(const Optimizer& optimizer, long long step, double corrections[2]) {
#if ADAM
    corrections[0] = 1.0 / (1.0 - pow(static_cast<double>(optimizer.beta1), static_cast<double>(step)));
    corrections[1] = 1.0 / (1.0 - pow(static_cast<double>(optimizer.beta2), static_cast<double>(step)));
#else
    corrections[0] = corrections[1] = 1.0;
#endif
}

// The next `size` numbers of `from`.
__device__ inline float* take(float*& from, int size) {
    float* taken = from;
    from += size;
    return taken;
}

__device__ Room carve(float* shared, const Buffers& buffers, int most_docs) {
    const long long own_floats = (SHARED_PARAMETERS ? 0 : 4 * PARAMETERS) + (SHARED_DOCUMENTS ? 0 : 4LL * most_docs);
    float* own = buffers.workspace + blockIdx.x * own_floats;
    float*& for_parameters = SHARED_PARAMETERS ? shared : own;
    float*& for_documents = SHARED_DOCUMENTS ? shared : own;
    Room room;
    room.parameters = take(for_parameters, PARAMETERS);
    room.gradient = take(for_parameters, PARAMETERS);
    room.first = take(for_parameters, PARAMETERS);
    room.second = take(for_parameters, PARAMETERS);
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

// Parameters that do not change: copied to shared memory, or read where they are.
__device__ void hold_parameters(Room& room, const float* parameters) {
#if SHARED_PARAMETERS
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) room.parameters[p] = parameters[p];
    __syncthreads();
#else
    room.parameters = const_cast<float*>(parameters);
#endif
}

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

// An epoch of one step a query: one team, one launch. `first` and `second` are the optimiser's memory.
extern "C" __global__ void TEAM_SHAPE __launch_bounds__(THREADS)
    train_queries(LISTS, BUFFERS, OPTIMIZER, const long long* order, int n_steps, long long steps_before,
                  float* parameters, float* first, float* second, int most_docs, double* loss) {
    MAKE_LISTS;
    MAKE_BUFFERS;
    MAKE_OPTIMIZER;
    extern __shared__ float memory[];
    Room room = carve(memory, buffers, most_docs);
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) {
        room.parameters[p] = parameters[p];
        room.first[p] = first[p];
        room.second[p] = second[p];
    }
    __syncthreads();
    double total = 0.0;
    for (int step = 0; step < n_steps; ++step) {
        total += query_pass(lists, buffers, room, static_cast<int>(order[step]), 0);
        // Two sets of partial gradients in turn: a block may write the next while another still reads this one.
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
// The gradients of a batch's queries, one block each: partial[block], and their losses.
extern "C" __global__ void __launch_bounds__(THREADS)
    batch_gradients(LISTS, BUFFERS, const long long* order, const float* parameters, int most_docs, double* losses) {
    MAKE_LISTS;
    MAKE_BUFFERS;
    extern __shared__ float memory[];
    Room room = carve(memory, buffers, most_docs);
    hold_parameters(room, parameters);
    double loss = query_pass(lists, buffers, room, static_cast<int>(order[blockIdx.x]), blockIdx.x);
    float* own = buffers.partial + static_cast<long long>(blockIdx.x) * PARAMETERS;
    for (int p = threadIdx.x; p < PARAMETERS; p += THREADS) own[p] = room.gradient[p];
    if (threadIdx.x == 0) losses[blockIdx.x] += loss;
}

// The step of one batch: a warp a parameter adds the queries' gradients in a fixed order.
extern "C" __global__ void batch_step(const float* partial, OPTIMIZER, int n_queries, long long step, float* parameters,
                                      float* first, float* second) {
    MAKE_OPTIMIZER;
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
    score_documents(LISTS, BUFFERS, const float* parameters) {
    MAKE_LISTS;
    MAKE_BUFFERS;
    extern __shared__ float memory[];
    Room room = carve(memory, buffers, 0);
    hold_parameters(room, parameters);
    for (long long start = static_cast<long long>(blockIdx.x) * THREADS; start < lists.n_docs;
         start += static_cast<long long>(gridDim.x) * THREADS) {
        long long docs = lists.n_docs - start;
        forward(lists, buffers, room, start, 0, docs < THREADS ? static_cast<int>(docs) : THREADS);
    }
}
