// RankSVM: sums over support pairs, and the Hessian-vector product that reads X once. One block works on one query at a
// time, one thread on one document: the paper's P-SWX, with scans in place of each thread's loop over its partners.
//
// Vocabulary. Documents of a query stand in ascending order of score; `place` counts them in that order. A pair of a
// better document a and a worse one b is a support pair if s_a - s_b < 1, a comparison that rounds the same seen from
// either document. Partners above the document at `place` are better ones at places < upper[place], partners below it
// worse ones at places >= lower[place]. See kernels/cpu/ranksvm_sums.py.
//
// Macros: COLUMN_GROUPS   groups of 4 features in a row of X, the last padded with zeros
//         ROWS_PER_CHUNK  rows that travel into shared memory together
//         METHOD          0: level by level, O(documents * levels); 1: a wavelet tree over levels, O(documents * log levels)
//
// Sums are float64 and in a fixed order: the same numbers come out of every run.

#ifndef COLUMN_GROUPS
#define COLUMN_GROUPS 34
#endif
#ifndef ROWS_PER_CHUNK
#define ROWS_PER_CHUNK 16
#endif
#ifndef METHOD
#define METHOD 0
#endif

namespace {

constexpr int kWarp = 32;
constexpr int kMostWarps = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
// Levels summed in one pass over a query.
constexpr int kLevelsPerPass = 4;

// A query's documents during the sums: in shared memory if there are few, else in global memory.
struct Workspace {
    double* products;  // n: by row
    double* values;    // n: by place, destroyed
    double* above;     // n
    double* below;     // n
    double* sums;      // 4 (n + 1)
};

// Doubles that a query of n documents needs, from an even one on: 9 n + 4, the larger of both methods'.
__device__ Workspace workspace_at(double* base, int n) {
    return {base, base + n, base + 2 * n, base + 3 * n, base + 4 * n};
}

// What a document's place has of its own; loaded early, because global memory is far.
struct Place {
    int level, upper, lower;
};

// The support pairs of one query, in global memory.
struct Pairs {
    const int* levels;
    const int* upper;
    const int* lower;
    const int* ranks;  // METHOD 1: for each bit of a level, from the highest, n + 1 numbers of ones before a position
    int n, n_levels;
    Place own;  // of place threadIdx.x

    __device__ int level(int place) const { return place == static_cast<int>(threadIdx.x) ? own.level : levels[place]; }
    __device__ int upper_at(int place) const { return place == static_cast<int>(threadIdx.x) ? own.upper : upper[place]; }
    __device__ int lower_at(int place) const { return place == static_cast<int>(threadIdx.x) ? own.lower : lower[place]; }
};

__device__ Pairs pairs_of(const int* levels, const int* upper, const int* lower, const int* ranks, int n, int n_levels) {
    Pairs pairs{levels, upper, lower, ranks, n, n_levels, {0, 0, 0}};
    const int place = threadIdx.x;
    if (place < n) pairs.own = {levels[place], upper[place], lower[place]};
    return pairs;
}

__device__ int bits_of(int n_levels) { return n_levels <= 1 ? 0 : 32 - __clz(n_levels - 1); }

// Inclusive scan of N numbers a thread over the block, in the order of threads; `carry` is added and grows by the block's
// total. `turn` alternates 0 and 1 from scan to scan, so that one barrier is enough.
template <typename T, int N>
__device__ void block_scan(T (&x)[N], T (&carry)[N], int turn) {
    __shared__ T totals[2][kMostWarps][N];
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, n_warps = blockDim.x / kWarp;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            const T other = __shfl_up_sync(kAllLanes, x[k], step);
            if (lane >= step) x[k] += other;
        }
    }
    if (lane == kWarp - 1) {
#pragma unroll
        for (int k = 0; k < N; ++k) totals[turn][warp][k] = x[k];
    }
    __syncthreads();
    T before[N];
#pragma unroll
    for (int k = 0; k < N; ++k) before[k] = carry[k];
    for (int w = 0; w < n_warps; ++w) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            if (w == warp) before[k] = carry[k];
            carry[k] += totals[turn][w][k];
        }
    }
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] += before[k];
}

// above[place] and below[place]: sums of values over partners. Level by level: sums[j][p] holds the total over places
// before p of the levels first + j and better.
__device__ void sum_by_levels(const Pairs& pairs, const Workspace& work) {
    const int n = pairs.n, width = n + 1;
    for (int place = threadIdx.x; place < n; place += blockDim.x) work.above[place] = work.below[place] = 0.0;
    int turn = 0;
    for (int first = 0; first < pairs.n_levels; first += kLevelsPerPass) {
        double carry[kLevelsPerPass] = {};
        if (threadIdx.x < kLevelsPerPass) work.sums[threadIdx.x * width] = 0.0;
        for (int start = 0; start < n; start += blockDim.x, turn ^= 1) {
            const int place = start + threadIdx.x;
            const double value = place < n ? work.values[place] : 0.0;
            const int level = place < n ? pairs.level(place) : -1;
            double x[kLevelsPerPass];
#pragma unroll
            for (int j = 0; j < kLevelsPerPass; ++j) x[j] = level >= first + j ? value : 0.0;
            block_scan(x, carry, turn);
            if (place < n) {
#pragma unroll
                for (int j = 0; j < kLevelsPerPass; ++j) work.sums[j * width + place + 1] = x[j];
            }
        }
        __syncthreads();
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const int level = pairs.level(place), upper = pairs.upper_at(place), lower = pairs.lower_at(place);
            const int better = level + 1 - first, same = level - first;
            if (better >= 0 && better < kLevelsPerPass) work.above[place] = work.sums[better * width + upper];
            // Worse ones are all less those of the same level or better.
            double below = work.below[place];
            if (first == 0) below += work.sums[n] - work.sums[lower];
            if (same >= 0 && same < kLevelsPerPass) below -= work.sums[same * width + n] - work.sums[same * width + lower];
            work.below[place] = below;
        }
        __syncthreads();
    }
}

// The same by a wavelet tree: bit by bit of the level, from the highest, documents are divided stably into those with 0
// and those with 1. A document follows the node of its own level, positions [node, end) of the current order, of which
// the first `inside` have places below its limit; the documents that leave its node upwards (downwards) are better
// (worse) than it.
__device__ void sum_by_bits(const Pairs& pairs, const Workspace& work) {
    const int n = pairs.n, width = n + 1;
    double* current = work.values;
    double* next = work.sums;
    double* ones = work.sums + n;
    double* zeros = ones + width;
    // 7 n + 2 doubles lie before it: one more where n is odd, for 16 bytes of alignment.
    int4* follower = reinterpret_cast<int4*>(zeros + width + (n & 1));
    for (int place = threadIdx.x; place < n; place += blockDim.x) {
        work.above[place] = work.below[place] = 0.0;
        follower[place] = make_int4(0, n, pairs.upper_at(place), pairs.lower_at(place));
    }
    int turn = 0;
    const int n_bits = bits_of(pairs.n_levels);
    for (int bit = n_bits - 1; bit >= 0; --bit) {
        const int* rank = pairs.ranks + static_cast<long long>(n_bits - 1 - bit) * width;
        const int n_zeros = n - rank[n];
        double carry[2] = {};
        if (threadIdx.x == 0) ones[0] = zeros[0] = 0.0;
        for (int start = 0; start < n; start += blockDim.x, turn ^= 1) {
            const int position = start + threadIdx.x;
            const double value = position < n ? current[position] : 0.0;
            const int before = position < n ? rank[position] : 0;
            const bool is_one = position < n && rank[position + 1] > before;
            double x[2] = {is_one ? value : 0.0, is_one ? 0.0 : value};
            block_scan(x, carry, turn);
            if (position < n) {
                ones[position + 1] = x[0];
                zeros[position + 1] = x[1];
                next[is_one ? n_zeros + before : position - before] = value;
            }
        }
        __syncthreads();
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const int4 at = follower[place];
            const int node = at.x, end = at.y;
            const int before = rank[node], before_end = rank[end];
            const int upper = rank[node + at.z] - before, lower = rank[node + at.w] - before;
            if ((pairs.level(place) >> bit) & 1) {
                work.below[place] += zeros[end] - zeros[node + at.w];
                follower[place] = make_int4(n_zeros + before, n_zeros + before_end, upper, lower);
            } else {
                work.above[place] += ones[node + at.z] - ones[node];
                follower[place] = make_int4(node - before, end - before_end, at.z - upper, at.w - lower);
            }
        }
        __syncthreads();
        double* swapped = current;
        current = next;
        next = swapped;
    }
}

__device__ void sum_partners(const Pairs& pairs, const Workspace& work) {
    if (METHOD == 0)
        sum_by_levels(pairs, work);
    else
        sum_by_bits(pairs, work);
}

// The numbers of ones before each position that sum_by_bits needs, for each bit of the levels.
__device__ void build_ranks(const int* levels, int n, int n_levels, int* ranks, const Workspace& work) {
    int* current = reinterpret_cast<int*>(work.values);
    int* next = reinterpret_cast<int*>(work.above);
    for (int place = threadIdx.x; place < n; place += blockDim.x) current[place] = levels[place];
    __syncthreads();
    int turn = 0;
    const int n_bits = bits_of(n_levels);
    for (int bit = n_bits - 1; bit >= 0; --bit) {
        int* rank = ranks + static_cast<long long>(n_bits - 1 - bit) * (n + 1);
        int carry[1] = {};
        if (threadIdx.x == 0) rank[0] = 0;
        for (int start = 0; start < n; start += blockDim.x, turn ^= 1) {
            const int position = start + threadIdx.x;
            int x[1] = {position < n ? (current[position] >> bit) & 1 : 0};
            block_scan(x, carry, turn);
            if (position < n) rank[position + 1] = x[0];
        }
        __syncthreads();
        const int n_zeros = n - carry[0];
        for (int position = threadIdx.x; position < n; position += blockDim.x) {
            const int level = current[position], before = rank[position];
            next[(level >> bit) & 1 ? n_zeros + before : position - before] = level;
        }
        __syncthreads();
        int* swapped = current;
        current = next;
        next = swapped;
    }
}

// The limits of each place, by bisection of the scores in ascending order.
__device__ void find_limits(const double* scores, int n, int place, int* upper, int* lower) {
    const double score = scores[place];
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (scores[middle] - score < 1.0)
            low = middle + 1;
        else
            high = middle;
    }
    *upper = low;
    low = 0;
    high = place;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (score - scores[middle] < 1.0)
            high = middle;
        else
            low = middle + 1;
    }
    *lower = low;
}

}  // namespace

// The support pairs at one w (equations 9 and 10), the loss of each query and, by row, AtA X w - At e times the weights.
// Queries with one level have no pairs: their residuals are 0. One block works on queries blockIdx.x, + gridDim.x, ...
extern "C" __global__ void find_support(
    const double* __restrict__ products,          // n_docs: X w
    const int* __restrict__ order,                // n_docs: the row behind each place, from the query's first
    const int* __restrict__ levels,               // n_docs
    const long long* __restrict__ query_ptr,      // n_queries + 1
    const int* __restrict__ n_levels,             // n_queries
    const double* __restrict__ query_weights,     // n_queries
    const double* __restrict__ document_weights,  // n_docs, or null if all are 1
    const long long* __restrict__ scratch_ptr,    // n_queries: where a query's workspace lies in scratch, or -1: shared
    const long long* __restrict__ rank_ptr,       // n_queries: where its ranks lie (METHOD 1)
    int n_queries,
    int* sorted_levels, int* upper, int* lower,   // n_docs, out
    double* degree,                               // n_docs, out: partners' weight
    int* ranks,                                   // out (METHOD 1)
    double* residuals,                            // n_docs, out
    double* losses,                               // n_queries, out
    double* scratch) {
    extern __shared__ double shared[];
    for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
        const long long start = query_ptr[query];
        const int n = static_cast<int>(query_ptr[query + 1] - start);
        if (n_levels[query] < 2) {
            for (int row = threadIdx.x; row < n; row += blockDim.x) residuals[start + row] = 0.0;
            if (threadIdx.x == 0) losses[query] = 0.0;
            continue;
        }
        const Workspace work = workspace_at(scratch_ptr[query] < 0 ? shared : scratch + scratch_ptr[query], n);
        double* scores = work.products;
        const double middle = products[start + order[start + n / 2]];
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const long long row = start + order[start + place];
            scores[place] = products[row] - middle;
            sorted_levels[start + place] = levels[row];
        }
        __syncthreads();
        for (int place = threadIdx.x; place < n; place += blockDim.x)
            find_limits(scores, n, place, upper + start + place, lower + start + place);
        int* own_ranks = METHOD == 1 ? ranks + rank_ptr[query] : nullptr;
        if (METHOD == 1) build_ranks(sorted_levels + start, n, n_levels[query], own_ranks, work);
        __syncthreads();
        const Pairs pairs =
            pairs_of(sorted_levels + start, upper + start, lower + start, own_ranks, n, n_levels[query]);
        const double query_weight = query_weights[query];
        for (int place = threadIdx.x; place < n; place += blockDim.x)
            work.values[place] = document_weights ? document_weights[start + order[start + place]] : 1.0;
        __syncthreads();
        sum_partners(pairs, work);  // beta+ and beta-
        double loss = 0.0;
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const long long row = start + order[start + place];
            const double weight = document_weights ? document_weights[row] : 1.0;
            const double above = work.above[place], surplus = work.below[place] - above;
            degree[start + place] = above + work.below[place];
            residuals[row] = -surplus;
            loss += weight * (above - 2.0 * scores[place] * surplus);
            work.values[place] = weight * scores[place];
        }
        __syncthreads();
        sum_partners(pairs, work);  // gamma+ and gamma-
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const long long row = start + order[start + place];
            const double weight = document_weights ? document_weights[row] : 1.0;
            const double spread = degree[start + place] * scores[place] - (work.above[place] + work.below[place]);
            loss += weight * scores[place] * spread;
            residuals[row] = query_weight * weight * (spread + residuals[row]);
        }
        double all[1] = {loss}, total[1] = {0.0};
        __syncthreads();
        block_scan(all, total, 0);
        if (threadIdx.x == 0) losses[query] = query_weight * total[0];
        __syncthreads();
    }
}

// Products X v, by row, become AtA X v times the weights, in place: the sums of a product that is not fused.
extern "C" __global__ void subtract_partners(
    double* products, const int* __restrict__ order, const int* __restrict__ sorted_levels,
    const int* __restrict__ upper, const int* __restrict__ lower, const double* __restrict__ degree,
    const int* __restrict__ ranks, const long long* __restrict__ query_ptr, const int* __restrict__ n_levels,
    const double* __restrict__ query_weights, const double* __restrict__ document_weights,
    const long long* __restrict__ scratch_ptr, const long long* __restrict__ rank_ptr, int n_queries, double* scratch) {
    extern __shared__ double shared[];
    for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
        const long long start = query_ptr[query];
        const int n = static_cast<int>(query_ptr[query + 1] - start);
        if (n_levels[query] < 2) {
            for (int row = threadIdx.x; row < n; row += blockDim.x) products[start + row] = 0.0;
            continue;
        }
        const Workspace work = workspace_at(scratch_ptr[query] < 0 ? shared : scratch + scratch_ptr[query], n);
        const Pairs pairs = pairs_of(sorted_levels + start, upper + start, lower + start,
                                     METHOD == 1 ? ranks + rank_ptr[query] : nullptr, n, n_levels[query]);
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const long long row = start + order[start + place];
            work.values[place] = products[row] * (document_weights ? document_weights[row] : 1.0);
        }
        __syncthreads();
        sum_partners(pairs, work);
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const long long row = start + order[start + place];
            const double weight = query_weights[query] * (document_weights ? document_weights[row] : 1.0);
            products[row] =
                weight * (degree[start + place] * products[row] - (work.above[place] + work.below[place]));
        }
        __syncthreads();
    }
}

// ---- The fused product: X travels once through a ring of chunks in shared memory. ----

namespace {

constexpr int kLanesPerRow = 8;
constexpr int kGroupsPerLane = (COLUMN_GROUPS + kLanesPerRow - 1) / kLanesPerRow;
// A lane always multiplies by the same numbers of the vector: in registers, as long as there are enough.
constexpr bool kVectorInRegisters = kGroupsPerLane <= 5;
constexpr long long kChunkGroups = static_cast<long long>(ROWS_PER_CHUNK) * COLUMN_GROUPS;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define BULK_COPY 1
#endif

#ifdef BULK_COPY
__device__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void barrier_init(unsigned long long* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

__device__ void bulk_copy(void* to, const void* from, unsigned bytes, unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

__device__ void barrier_wait(unsigned long long* barrier, unsigned parity) {
    asm volatile(
        "{\n .reg .pred done;\n"
        "again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @!done bra again;\n}\n" ::"r"(
            shared_address(barrier)),
        "r"(parity)
        : "memory");
}
#endif

// Chunks of rows of one block's share of X, in the order of the rows. Chunk c lies in slot c % n_slots. All threads keep
// the same books; `fill` and `wait` are called by all of them.
struct Ring {
    float4* rows;
    unsigned long long* barriers;  // one a slot
    int n_slots;
    const float4* source;  // the share's first row
    int n_rows;            // of the share
    int n_filled;          // chunks asked for so far

    // Ask for every chunk that has a place once the rows before `released` are not needed any more. A barrier of the
    // block must lie between the last reading of those rows and this.
    __device__ void fill(int released) {
        const int n_chunks = (n_rows + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK;
        const int limit = min(n_chunks, released / ROWS_PER_CHUNK + n_slots);
        for (; n_filled < limit; ++n_filled) {
            const int slot = n_filled % n_slots, first = n_filled * ROWS_PER_CHUNK;
            const int n_groups = min(ROWS_PER_CHUNK, n_rows - first) * COLUMN_GROUPS;
            const float4* from = source + static_cast<long long>(first) * COLUMN_GROUPS;
            float4* to = rows + slot * kChunkGroups;
#ifdef BULK_COPY
            if (threadIdx.x == 0) bulk_copy(to, from, n_groups * sizeof(float4), barriers + slot);
#else
            for (int k = threadIdx.x; k < n_groups; k += blockDim.x) to[k] = from[k];
#endif
        }
#ifndef BULK_COPY
        __syncthreads();
#endif
    }

    // The row's 4 features of a group; `wait` for its chunk first.
    __device__ const float4* row(int number) const {
        const int chunk = number / ROWS_PER_CHUNK;
        return rows + (chunk % n_slots) * kChunkGroups + (number - chunk * ROWS_PER_CHUNK) * COLUMN_GROUPS;
    }

    __device__ void wait(int number) const {
#ifdef BULK_COPY
        const int chunk = number / ROWS_PER_CHUNK;
        barrier_wait(barriers + chunk % n_slots, (chunk / n_slots) & 1);
#endif
    }
};

// The lane's part of the vector that rows are multiplied by.
struct LaneVector {
    double own[kVectorInRegisters ? kGroupsPerLane : 1][4];
    const double* shared;

    __device__ LaneVector(const double* vector, double* room) : shared(room) {
        if (kVectorInRegisters) {
            const int lane = threadIdx.x % kLanesPerRow;
#pragma unroll
            for (int k = 0; k < (kVectorInRegisters ? kGroupsPerLane : 1); ++k) {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int group = lane + k * kLanesPerRow;
                    own[k][j] = group < COLUMN_GROUPS ? vector[4 * group + j] : 0.0;
                }
            }
        } else {
            for (int j = threadIdx.x; j < 4 * COLUMN_GROUPS; j += blockDim.x) room[j] = vector[j];
            __syncthreads();
        }
    }

    __device__ double at(int k, int group, int j) const {
        return kVectorInRegisters ? own[kVectorInRegisters ? k : 0][j] : shared[4 * group + j];
    }
};

// x . vector of the rows first <= row < end, eight lanes a row; products[row - origin].
__device__ void multiply_rows(const Ring& ring, const LaneVector& vector, int first, int end, int origin,
                              double* products) {
    const int lane = threadIdx.x % kLanesPerRow, n_together = blockDim.x / kLanesPerRow;
    for (int base = first; base < end; base += n_together) {
        const int row = base + threadIdx.x / kLanesPerRow;
        double total = 0.0;
        if (row < end) {
            ring.wait(row);
            const float4* x = ring.row(row);
            double part[4] = {};
#pragma unroll
            for (int k = 0; k < kGroupsPerLane; ++k) {
                const int group = lane + k * kLanesPerRow;
                if (group < COLUMN_GROUPS) {
                    const float4 value = x[group];
                    part[0] += static_cast<double>(value.x) * vector.at(k, group, 0);
                    part[1] += static_cast<double>(value.y) * vector.at(k, group, 1);
                    part[2] += static_cast<double>(value.z) * vector.at(k, group, 2);
                    part[3] += static_cast<double>(value.w) * vector.at(k, group, 3);
                }
            }
            total = (part[0] + part[1]) + (part[2] + part[3]);
        }
#pragma unroll
        for (int step = 1; step < kLanesPerRow; step *= 2) total += __shfl_xor_sync(kAllLanes, total, step);
        if (row < end && lane == 0) products[row - origin] = total;
    }
}

__device__ void add_row(const float4 value, double factor, double (&total)[4]) {
    total[0] += factor * static_cast<double>(value.x);
    total[1] += factor * static_cast<double>(value.y);
    total[2] += factor * static_cast<double>(value.z);
    total[3] += factor * static_cast<double>(value.w);
}

__device__ void prefetch(const void* address) {
#ifdef BULK_COPY
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#endif
}

}  // namespace

// partial[block] = Xt AtA X vector over the block's queries (equation 13 without v, 2 and C).
// Threads: at least COLUMN_GROUPS. A query whose rows do not all fit into the ring streams through it; its first rows,
// which are no longer there when they are added, are read again.
extern "C" __global__ void __launch_bounds__(512, 1) hessian_vector(
    const float4* __restrict__ features,       // n_docs x COLUMN_GROUPS
    const double* __restrict__ vector,         // 4 COLUMN_GROUPS
    const int* __restrict__ order, const int* __restrict__ sorted_levels, const int* __restrict__ upper,
    const int* __restrict__ lower, const double* __restrict__ degree, const int* __restrict__ ranks,
    const long long* __restrict__ query_ptr, const int* __restrict__ n_levels,
    const double* __restrict__ query_weights, const double* __restrict__ document_weights,
    const long long* __restrict__ scratch_ptr, const long long* __restrict__ rank_ptr,
    const int* __restrict__ block_ptr,         // gridDim.x + 1: the queries of each block
    long long n_docs,
    int n_slots,                               // chunks in shared memory
    double* scratch,
    double* __restrict__ partial) {            // gridDim.x x 4 COLUMN_GROUPS
    extern __shared__ float4 shared_groups[];
    const int first_query = block_ptr[blockIdx.x], last_query = block_ptr[blockIdx.x + 1];
    const long long share = query_ptr[first_query];
    Ring ring;
    ring.rows = shared_groups;
    ring.n_slots = n_slots;
    double* shared = reinterpret_cast<double*>(shared_groups + n_slots * kChunkGroups);
    ring.barriers = reinterpret_cast<unsigned long long*>(shared);
    shared += n_slots + (n_slots & 1);
    ring.source = features + share * COLUMN_GROUPS;
    ring.n_rows = static_cast<int>(query_ptr[last_query] - share);
    ring.n_filled = 0;
#ifdef BULK_COPY
    if (threadIdx.x < n_slots) barrier_init(ring.barriers + threadIdx.x);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
#endif
    ring.fill(0);

    const LaneVector own_vector(vector, shared);
    if (!kVectorInRegisters) shared += 4 * COLUMN_GROUPS;
    // Threads as rows of column groups: the thread's group, and which of every n_row_groups rows it adds.
    const int n_row_groups = blockDim.x / COLUMN_GROUPS;
    const int own_group = threadIdx.x % COLUMN_GROUPS, own_row = threadIdx.x / COLUMN_GROUPS;
    double total[4] = {};

    for (int query = first_query; query < last_query; ++query) {
        const long long start = query_ptr[query];
        const int n = static_cast<int>(query_ptr[query + 1] - start);
        const int begin = static_cast<int>(start - share), end = begin + n;
        if (n_levels[query] < 2) {
            // Chunks are waited for even if nobody reads them, or their barriers would lose count of the turns.
            for (int row = begin; row < end;) {
                ring.wait(row);
                row = min(end, (row / ROWS_PER_CHUNK + 1) * ROWS_PER_CHUNK);
                __syncthreads();
                ring.fill(row);
            }
            continue;
        }
        const Workspace work = workspace_at(scratch_ptr[query] < 0 ? shared : scratch + scratch_ptr[query], n);
        const Pairs pairs = pairs_of(sorted_levels + start, upper + start, lower + start,
                                     METHOD == 1 ? ranks + rank_ptr[query] : nullptr, n, n_levels[query]);
        // By place, as `pairs`: loaded while rows are multiplied.
        const int own_place_row = threadIdx.x < n ? order[start + threadIdx.x] : 0;
        const double own_degree = threadIdx.x < n ? degree[start + threadIdx.x] : 0.0;
        if (threadIdx.x % kWarp == 0) {
            // What the next query's sums read: 32 numbers of 4 bytes are a cache line of 128.
            const long long place = min(start + n + threadIdx.x, n_docs - 1);
            prefetch(order + place);
            prefetch(sorted_levels + place);
            prefetch(upper + place);
            prefetch(lower + place);
            prefetch(degree + place);
        }
        // Rows from `resident` on are still in the ring when they are added.
        const int last_chunk = (end - 1) / ROWS_PER_CHUNK;
        const int resident = max(begin, (last_chunk - n_slots + 1) * ROWS_PER_CHUNK);
        for (int row = begin; row < resident;) {
            const int stop = min(resident, row + max(1, n_slots / 2) * ROWS_PER_CHUNK);
            multiply_rows(ring, own_vector, row, stop, begin, work.products);
            row = stop;
            __syncthreads();
            ring.fill(row);
        }
        multiply_rows(ring, own_vector, resident, end, begin, work.products);
        __syncthreads();
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const int row = place == static_cast<int>(threadIdx.x) ? own_place_row : order[start + place];
            work.values[place] = work.products[row] * (document_weights ? document_weights[start + row] : 1.0);
        }
        __syncthreads();
        sum_partners(pairs, work);
        const double query_weight = query_weights[query];
        for (int place = threadIdx.x; place < n; place += blockDim.x) {
            const int row = place == static_cast<int>(threadIdx.x) ? own_place_row : order[start + place];
            const double of_partners = place == static_cast<int>(threadIdx.x) ? own_degree : degree[start + place];
            const double weight = query_weight * (document_weights ? document_weights[start + row] : 1.0);
            work.products[row] = weight * (of_partners * work.products[row] - (work.above[place] + work.below[place]));
        }
        __syncthreads();
        if (own_row < n_row_groups) {
            for (int row = resident + own_row; row < end; row += n_row_groups)
                add_row(ring.row(row)[own_group], work.products[row - begin], total);
            for (int row = begin + own_row; row < resident; row += n_row_groups)
                add_row(ring.source[static_cast<long long>(row) * COLUMN_GROUPS + own_group], work.products[row - begin],
                        total);
        }
        __syncthreads();
        ring.fill(end);
    }

    // The ring is empty now: its memory takes the row groups' totals.
    double* totals = reinterpret_cast<double*>(shared_groups);
    if (own_row < n_row_groups) {
#pragma unroll
        for (int j = 0; j < 4; ++j) totals[(own_row * COLUMN_GROUPS + own_group) * 4 + j] = total[j];
    }
    __syncthreads();
    for (int column = threadIdx.x; column < 4 * COLUMN_GROUPS; column += blockDim.x) {
        double sum = 0.0;
        for (int row = 0; row < n_row_groups; ++row) sum += totals[row * COLUMN_GROUPS * 4 + column];
        partial[static_cast<long long>(blockIdx.x) * COLUMN_GROUPS * 4 + column] = sum;
    }
}
