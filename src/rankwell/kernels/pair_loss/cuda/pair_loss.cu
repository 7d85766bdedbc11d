// RankSVM: sums over support pairs, and the Hessian-vector product that reads X once. A team of threads (a block, or some
// warps of one) works on one query at a time, one thread on one document: the paper's P-SWX, with scans in place of each
// thread's loop over its partners.
//
// Vocabulary. Documents of a query stand in ascending order of score; `place` counts them in that order. A pair of a
// better document a and a worse one b is a support pair if s_a - s_b < 1, a comparison that rounds the same seen from
// either document. Partners above the document at `place` are better ones at places < upper[place], partners below it
// worse ones at places >= lower[place]. See kernels/pair_loss/cpu/sums.py.
//
// Macros: COLUMN_GROUPS   groups of 4 features in a row of X, the last padded with zeros
//         ROWS_PER_CHUNK  rows that travel into shared memory together
//         FILL_WARPS, MULTIPLY_WARPS, SUM_WARPS, ADD_WARPS  warps of a block of the fused product that have these tasks
//         METHOD          0: level by level, O(documents * levels); 1: a wavelet tree over levels, O(documents * log levels)
//
// Sums over partners are float64, everything that decides the loss and the gradient too. The fused product, which only
// conjugate gradients use, multiplies in float32: x - centre, where centre is near the columns' means (a constant added to
// every row of a query cancels in its pairs), times the vector over a lane's columns and then over lanes; rows times
// factors for runs of at most kRunRows rows, which are added in float64. Every sum has a fixed order: the same numbers come
// out of every run.

#ifndef COLUMN_GROUPS
#define COLUMN_GROUPS 34
#endif
#ifndef ROWS_PER_CHUNK
#define ROWS_PER_CHUNK 8
#endif
#ifndef MULTIPLY_WARPS
#define FILL_WARPS 2
#define MULTIPLY_WARPS 4
#define SUM_WARPS 5
#define ADD_WARPS 5
#endif
#ifndef METHOD
#define METHOD 0
#endif

namespace {

constexpr int kWarp = 32;
constexpr int kMostWarps = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
// Levels summed in one pass over a query: labels from 0 to 4 are the most common ones.
constexpr int kLevelsPerPass = 5;

// Threads that work on one query together: whole warps of a block, with a barrier of their own.
struct Team {
    int thread;  // 0 ... size - 1
    int size;
    int barrier;

    // Not the aligned form: lanes of a warp may come one after the other.
    __device__ void sync() const { asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(size) : "memory"); }
};

__device__ Team whole_block() { return {static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x), 0}; }

// The document at a place of a query.
struct __align__(16) Place {
    int row;  // from the query's first
    int level, upper, lower;
};

// What a thread holds in registers of its first places, team.thread, + team.size, ...: loaded early, because global memory
// is far.
constexpr int kOwnPlaces = 2;

struct OwnPlaces {
    Place documents[kOwnPlaces];
    double degree[kOwnPlaces];

    __device__ void load(const Team& team, const Place* places, const double* degrees, int n) {
#pragma unroll
        for (int k = 0; k < kOwnPlaces; ++k) {
            const int place = team.thread + k * team.size;
            if (place < n) {
                documents[k] = places[place];
                degree[k] = degrees[place];
            }
        }
    }

    // Ask for it: a line of the cache has 128 bytes.
    static __device__ void prefetch(const Team& team, const Place* places, const double* degrees, int n) {
        for (int place = 8 * team.thread; place < n; place += 8 * team.size) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(places + place));
            if (place % 16 == 0) asm volatile("prefetch.global.L2 [%0];" ::"l"(degrees + place));
        }
    }
};

// The support pairs of one query.
struct Pairs {
    const Place* places;
    const double* degrees;  // by place: partners' weight
    const int* ranks;  // METHOD 1: for each bit of a level, from the highest, n + 1 numbers of ones before a position
    int n, n_levels;
    OwnPlaces own;

    // visit(place, document, degree) for each of the thread's places, in ascending order.
    template <typename Visit>
    __device__ void for_own_places(const Team& team, Visit visit) const {
        int place = team.thread;
#pragma unroll
        for (int k = 0; k < kOwnPlaces; ++k, place += team.size)
            if (place < n) visit(place, own.documents[k], own.degree[k]);
        for (; place < n; place += team.size) visit(place, places[place], degrees[place]);
    }
};

// Room for the sums of one query: in shared memory if it has few documents, else in global memory.
struct Workspace {
    double* sums;                      // METHOD 0: 5 (n + 1)
    double *current, *next;            // METHOD 1: n each
    double *ones, *zeros;              // METHOD 1: n + 1 each
    int4* follower;                    // METHOD 1: n
    double *above, *below, *products;  // n each; METHOD 0: the first two only if there are more levels than in one pass
};

// From an even double on: 9 n + 6 in all, the larger of both methods'.
__device__ Workspace workspace_at(double* base, int n) {
    double* rest = base + (METHOD == 0 ? 5 * n + 5 : 6 * n + 2);
    return {base,
            base,
            base + n,
            base + 2 * n,
            base + 3 * n + 1,
            reinterpret_cast<int4*>(base + 4 * n + 2),
            rest,
            rest + n,
            rest + 2 * n};
}

__device__ int bits_of(int n_levels) { return n_levels <= 1 ? 0 : 32 - __clz(n_levels - 1); }

// Inclusive scan of N numbers a thread over the team, in the order of threads; `carry` is added and grows by the team's
// total. `turn` alternates 0 and 1 from scan to scan, so that one barrier is enough. One team of a block may scan.
template <typename T, int N>
__device__ void team_scan(const Team& team, T (&x)[N], T (&carry)[N], int turn) {
    __shared__ T totals[2][kMostWarps][N];
    const int lane = team.thread % kWarp, warp = team.thread / kWarp, n_warps = team.size / kWarp;
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
    team.sync();
#pragma unroll
    for (int k = 0; k < N; ++k) {
        T before = carry[k];
        for (int w = 0; w < n_warps; ++w) {
            if (w == warp) x[k] += before;
            before += totals[turn][w][k];
        }
        carry[k] = before;
    }
}

// Exclusive scan of n numbers in place by one warp, and their total behind them. A lane takes neighbours, an odd number of
// them, because then lanes use different banks of shared memory.
__device__ void warp_scan(double* numbers, int n) {
    constexpr int per_lane = 5;
    const int lane = threadIdx.x % kWarp;
    double carry = 0.0;
    for (int start = 0; start < n; start += per_lane * kWarp) {
        const int first = start + per_lane * lane;
        double x[per_lane], own_total = 0.0;
#pragma unroll
        for (int k = 0; k < per_lane; ++k) x[k] = first + k < n ? numbers[first + k] : 0.0;
#pragma unroll
        for (int k = 0; k < per_lane; ++k) own_total += x[k];
        double through = own_total;
#pragma unroll
        for (int step = 1; step < kWarp; step *= 2) {
            const double other = __shfl_up_sync(kAllLanes, through, step);
            if (lane >= step) through += other;
        }
        double before = carry + (through - own_total);
#pragma unroll
        for (int k = 0; k < per_lane; ++k) {
            if (first + k < n) numbers[first + k] = before;
            before += x[k];
        }
        carry += __shfl_sync(kAllLanes, through, kWarp - 1);
    }
    if (lane == 0) numbers[n] = carry;
}

// finish(place, document, degree, above, below) for each document: the sums of value(place, document) over its partners.
// Level by level: sums[j][p] holds the total over places before p of the levels first + j and better. A warp scans a level.
template <typename Value, typename Finish>
__device__ void sum_by_levels(const Team& team, const Pairs& pairs, const Workspace& work, Value value, Finish finish) {
    const int n = pairs.n, width = n + 1;
    for (int first = 0; first < pairs.n_levels; first += kLevelsPerPass) {
        const bool is_first = first == 0, is_last = first + kLevelsPerPass >= pairs.n_levels;
        pairs.for_own_places(team, [&](int place, const Place& own, double) {
            const double own_value = value(place, own);
#pragma unroll
            for (int j = 0; j < kLevelsPerPass; ++j)
                work.sums[j * width + place] = own.level >= first + j ? own_value : 0.0;
        });
        team.sync();
        for (int j = team.thread / kWarp; j < min(kLevelsPerPass, pairs.n_levels - first); j += team.size / kWarp)
            warp_scan(work.sums + j * width, n);
        team.sync();
        pairs.for_own_places(team, [&](int place, const Place& own, double degree) {
            const int better = own.level + 1 - first, same = own.level - first;
            double above = is_first ? 0.0 : work.above[place];
            // Worse ones are all less those of the same level or better.
            double below = is_first ? work.sums[n] - work.sums[own.lower] : work.below[place];
            if (better >= 0 && better < min(kLevelsPerPass, pairs.n_levels - first))
                above = work.sums[better * width + own.upper];
            if (same >= 0 && same < kLevelsPerPass)
                below -= work.sums[same * width + n] - work.sums[same * width + own.lower];
            if (is_last) {
                finish(place, own, degree, above, below);
            } else {
                work.above[place] = above;
                work.below[place] = below;
            }
        });
        if (!is_last) team.sync();
    }
}

// The same by a wavelet tree: bit by bit of the level, from the highest, documents are divided stably into those with 0
// and those with 1. A document follows the node of its own level, positions [node, end) of the current order, of which
// the first `inside` have places below its limit; the documents that leave its node upwards (downwards) are better
// (worse) than it.
template <typename Value, typename Finish>
__device__ void sum_by_bits(const Team& team, const Pairs& pairs, Workspace work, Value value, Finish finish) {
    const int n = pairs.n, width = n + 1;
    pairs.for_own_places(team, [&](int place, const Place& own, double) {
        work.current[place] = value(place, own);
        work.above[place] = work.below[place] = 0.0;
        work.follower[place] = make_int4(0, n, own.upper, own.lower);
    });
    int turn = 0;
    const int n_bits = bits_of(pairs.n_levels);
    for (int bit = n_bits - 1; bit >= 0; --bit) {
        const int* rank = pairs.ranks + static_cast<long long>(n_bits - 1 - bit) * width;
        const int n_zeros = n - rank[n];
        double carry[2] = {};
        if (team.thread == 0) work.ones[0] = work.zeros[0] = 0.0;
        for (int start = 0; start < n; start += team.size, turn ^= 1) {
            const int position = start + team.thread;
            const double own_value = position < n ? work.current[position] : 0.0;
            const int before = position < n ? rank[position] : 0;
            const bool is_one = position < n && rank[position + 1] > before;
            double x[2] = {is_one ? own_value : 0.0, is_one ? 0.0 : own_value};
            team_scan(team, x, carry, turn);
            if (position < n) {
                work.ones[position + 1] = x[0];
                work.zeros[position + 1] = x[1];
                work.next[is_one ? n_zeros + before : position - before] = own_value;
            }
        }
        team.sync();
        pairs.for_own_places(team, [&](int place, const Place& own, double degree) {
            const int4 at = work.follower[place];
            const int node = at.x, end = at.y;
            const int before = rank[node], before_end = rank[end];
            const int upper = rank[node + at.z] - before, lower = rank[node + at.w] - before;
            if ((own.level >> bit) & 1) {
                work.below[place] += work.zeros[end] - work.zeros[node + at.w];
                work.follower[place] = make_int4(n_zeros + before, n_zeros + before_end, upper, lower);
            } else {
                work.above[place] += work.ones[node + at.z] - work.ones[node];
                work.follower[place] = make_int4(node - before, end - before_end, at.z - upper, at.w - lower);
            }
            if (bit == 0) finish(place, own, degree, work.above[place], work.below[place]);
        });
        team.sync();
        double* swapped = work.current;
        work.current = work.next;
        work.next = swapped;
    }
}

// A thread is asked for the values of its own places, and finishes them. A barrier of the team must lie between one call
// and the next.
template <typename Value, typename Finish>
__device__ void sum_partners(const Team& team, const Pairs& pairs, const Workspace& work, Value value, Finish finish) {
    if (METHOD == 0)
        sum_by_levels(team, pairs, work, value, finish);
    else
        sum_by_bits(team, pairs, work, value, finish);
}

// The numbers of ones before each position that sum_by_bits needs, for each bit of the levels.
__device__ void build_ranks(const Team& team, const Place* places, int n, int n_levels, int* ranks,
                            const Workspace& work) {
    int* current = reinterpret_cast<int*>(work.current);
    int* next = reinterpret_cast<int*>(work.next);
    for (int place = team.thread; place < n; place += team.size) current[place] = places[place].level;
    team.sync();
    int turn = 0;
    const int n_bits = bits_of(n_levels);
    for (int bit = n_bits - 1; bit >= 0; --bit) {
        int* rank = ranks + static_cast<long long>(n_bits - 1 - bit) * (n + 1);
        int carry[1] = {};
        if (team.thread == 0) rank[0] = 0;
        for (int start = 0; start < n; start += team.size, turn ^= 1) {
            const int position = start + team.thread;
            int x[1] = {position < n ? (current[position] >> bit) & 1 : 0};
            team_scan(team, x, carry, turn);
            if (position < n) rank[position + 1] = x[0];
        }
        team.sync();
        const int n_zeros = n - carry[0];
        for (int position = team.thread; position < n; position += team.size) {
            const int level = current[position], before = rank[position];
            next[(level >> bit) & 1 ? n_zeros + before : position - before] = level;
        }
        team.sync();
        int* swapped = current;
        current = next;
        next = swapped;
    }
}

// The limits of a place, by bisection of the scores in ascending order.
__device__ void find_limits(const double* scores, int n, int place, Place& document) {
    const double score = scores[place];
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (scores[middle] - score < 1.0)
            low = middle + 1;
        else
            high = middle;
    }
    document.upper = low;
    low = 0;
    high = place;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (score - scores[middle] < 1.0)
            high = middle;
        else
            low = middle + 1;
    }
    document.lower = low;
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
    Place* places,                                // n_docs, out
    double* degree,                               // n_docs, out, by place: partners' weight
    int* ranks,                                   // out (METHOD 1)
    double* residuals,                            // n_docs, out
    double* losses,                               // n_queries, out
    double* scratch) {
    extern __shared__ double shared[];
    const Team team = whole_block();
    for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
        const long long start = query_ptr[query];
        const int n = static_cast<int>(query_ptr[query + 1] - start);
        if (n_levels[query] < 2) {
            for (int row = team.thread; row < n; row += team.size) residuals[start + row] = 0.0;
            if (team.thread == 0) losses[query] = 0.0;
            continue;
        }
        const Workspace work = workspace_at(scratch_ptr[query] < 0 ? shared : scratch + scratch_ptr[query], n);
        double* scores = work.products;
        const double middle = products[start + order[start + n / 2]];
        for (int place = team.thread; place < n; place += team.size)
            scores[place] = products[start + order[start + place]] - middle;
        team.sync();
        for (int place = team.thread; place < n; place += team.size) {
            Place document{order[start + place], levels[start + order[start + place]], 0, 0};
            find_limits(scores, n, place, document);
            places[start + place] = document;
        }
        int* own_ranks = METHOD == 1 ? ranks + rank_ptr[query] : nullptr;
        if (METHOD == 1) build_ranks(team, places + start, n, n_levels[query], own_ranks, work);
        Pairs pairs{places + start, degree + start, own_ranks, n, n_levels[query], {}};
        pairs.own.load(team, pairs.places, pairs.degrees, n);
        const double query_weight = query_weights[query];
        const auto weight = [&](int row) { return document_weights ? document_weights[start + row] : 1.0; };
        double loss = 0.0;
        sum_partners(
            team, pairs, work, [&](int, const Place& own) { return weight(own.row); },
            [&](int place, const Place& own, double, double above, double below) {  // beta+ and beta-
                degree[start + place] = above + below;
                residuals[start + own.row] = above - below;
                loss += weight(own.row) * (above - 2.0 * scores[place] * (below - above));
            });
        team.sync();
        sum_partners(
            team, pairs, work, [&](int place, const Place& own) { return weight(own.row) * scores[place]; },
            [&](int place, const Place& own, double, double above, double below) {  // gamma+ and gamma-
                const double spread = degree[start + place] * scores[place] - (above + below);
                loss += weight(own.row) * scores[place] * spread;
                double& residual = residuals[start + own.row];
                residual = query_weight * weight(own.row) * (spread + residual);
            });
        double all[1] = {loss}, total[1] = {0.0};
        team.sync();
        team_scan(team, all, total, 0);
        if (team.thread == 0) losses[query] = query_weight * total[0];
        team.sync();
    }
}

// Products X v, by row, become AtA X v times the weights, in place: the sums of a product that is not fused.
extern "C" __global__ void subtract_partners(
    double* products, const Place* __restrict__ places, const double* __restrict__ degree,
    const int* __restrict__ ranks, const long long* __restrict__ query_ptr, const int* __restrict__ n_levels,
    const double* __restrict__ query_weights, const double* __restrict__ document_weights,
    const long long* __restrict__ scratch_ptr, const long long* __restrict__ rank_ptr, int n_queries, double* scratch) {
    extern __shared__ double shared[];
    const Team team = whole_block();
    for (int query = blockIdx.x; query < n_queries; query += gridDim.x) {
        const long long start = query_ptr[query];
        const int n = static_cast<int>(query_ptr[query + 1] - start);
        if (n_levels[query] < 2) {
            for (int row = team.thread; row < n; row += team.size) products[start + row] = 0.0;
            continue;
        }
        const Workspace work = workspace_at(scratch_ptr[query] < 0 ? shared : scratch + scratch_ptr[query], n);
        const int* own_ranks = METHOD == 1 ? ranks + rank_ptr[query] : nullptr;
        Pairs pairs{places + start, degree + start, own_ranks, n, n_levels[query], {}};
        pairs.own.load(team, pairs.places, pairs.degrees, n);
        const auto weight = [&](int row) { return document_weights ? document_weights[start + row] : 1.0; };
        sum_partners(
            team, pairs, work,
            [&](int, const Place& own) { return products[start + own.row] * weight(own.row); },
            [&](int, const Place& own, double degree, double above, double below) {
                double& product = products[start + own.row];
                product = query_weights[query] * weight(own.row) * (degree * product - (above + below));
            });
        team.sync();
    }
}

// ---- The fused product: X travels once through a ring of chunks in shared memory. ----
//
// A block takes its queries one after the other. Its warps are a pipeline, each with one task:
//
//   fill      copies a query's rows into the ring; a chunk holds rows of one query
//   multiply  rows times the vector
//   sum       the sums over partners, and from them what each row counts: its factor
//   add       rows times their factors to the block's total; then the chunk's slot is free
//
// So memory is read all the time, while queries that are there are multiplied, summed and added. Of a query that does
// not fit into the ring, the chunks before the last n_slots ones leave once they are multiplied; their rows are read a
// second time, to be added.
//
// Bulk copies and barriers that count their bytes need compute capability 9.0.

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

namespace {

constexpr int kFirstMultiplyWarp = ADD_WARPS, kFirstSumWarp = kFirstMultiplyWarp + MULTIPLY_WARPS;
constexpr int kFirstFillWarp = kFirstSumWarp + SUM_WARPS;
constexpr int kSumBarrier = 1;

// Rows that a warp multiplies, or adds in float32, together.
constexpr int kRunRows = 8;
constexpr int kChunkGroups = ROWS_PER_CHUNK * COLUMN_GROUPS;
// A warp works on a row, a lane on these columns: groups of 4 as long as all 32 lanes have one, then single ones.
constexpr int kColumns = 4 * COLUMN_GROUPS;
constexpr int kQuads = kColumns / (4 * kWarp);
constexpr int kSingles = (kColumns - 4 * kWarp * kQuads + kWarp - 1) / kWarp;

// Numbers of the lane's columns.
template <typename T>
struct LaneColumns {
    T quads[kQuads + 1][4], singles[kSingles + 1];  // one more than there are, because there may be none

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

__device__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// A query with pairs, as the host describes it.
struct Query {
    long long start;    // its first row
    long long scratch;  // where its workspace and products lie in global memory, or -1: in shared memory
    long long ranks;    // where its ranks lie (METHOD 1)
    double weight;
    int n, n_levels;

    __device__ int n_chunks() const { return (n + ROWS_PER_CHUNK - 1) / ROWS_PER_CHUNK; }
};

__device__ void arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Wait for phase `turn` of a barrier. A thread sleeps until then, or for 10 ms: it takes no turns from others.
__device__ void wait(unsigned long long* barrier, unsigned turn) {
    asm volatile(
        "{\n .reg .pred done;\n"
        "again:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1, %2;\n @!done bra again;\n}\n" ::"r"(
            shared_address(barrier)),
        "r"(turn & 1), "r"(10000000)
        : "memory");
}

// A place in something that goes round, and how often it went round before.
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

// What warps of a block share. A chunk lies in a slot, a product (later a factor) in the ring of factors. A barrier of a
// slot completes once for each chunk, one of a query once for each query that has its turn there; there are more of
// the latter than queries that any two warps can be apart. Who waits for a phase has waited for the one before: a
// barrier tells only odd ones from even ones.
struct Pipeline {
    float4* rows;                                // n_slots chunks
    unsigned long long *filled, *freed;          // n_slots each
    unsigned long long *multiplied, *summed;     // n_turns each
    float* factors;                              // n_factors
    int n_slots, n_factors;
    const Query* queries;
    int first_query, last_query;

    __device__ int n_turns() const { return n_slots + 2 * MULTIPLY_WARPS; }

    __device__ void init() const {
        for (int k = threadIdx.x; k < 2 * (n_slots + n_turns()); k += blockDim.x) {
            unsigned long long* barrier = filled + k;
            const int arrivals = barrier >= multiplied && barrier < summed ? MULTIPLY_WARPS : 1;
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
                         : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }

    __device__ const float* chunk(const Turning& slot) const {
        return reinterpret_cast<const float*>(rows + slot.place * kChunkGroups);
    }

    // Chunks of a query that do not stay in the ring until they are added.
    __device__ int n_passing(const Query& query) const { return max(0, query.n_chunks() - n_slots); }
};

// Where a query's parts lie: its first chunk, its barriers, its factors.
struct Position {
    Turning slot, turn, factor;
};

// visit(query, position) for each of the block's queries. The next one is looked up meanwhile.
template <typename Visit>
__device__ void for_each_query(const Pipeline& pipeline, Visit visit) {
    if (pipeline.first_query == pipeline.last_query) return;
    Position at{};
    Query ahead = pipeline.queries[pipeline.first_query];
    for (int number = pipeline.first_query; number < pipeline.last_query; ++number) {
        const Query query = ahead;
        ahead = pipeline.queries[min(number + 1, pipeline.last_query - 1)];
        visit(query, at);
        at.slot = at.slot.after(query.n_chunks(), pipeline.n_slots);
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

// A warp of n_warps with one task works on slots warp, + n_warps, ...: how many chunks from `slot` on come before its next.
__device__ int chunks_until(int warp, int n_warps, const Turning& slot, int n_slots) {
    const int n_before = (warp + n_warps - slot.place % n_warps) % n_warps;
    return slot.place + n_before < n_slots ? n_before : n_slots - slot.place + warp;
}

__device__ void fill(const Pipeline& pipeline, const float4* features) {
    const int warp = threadIdx.x / kWarp - kFirstFillWarp;
    for_each_query(pipeline, [&](const Query& query, const Position& at) {
        const float4* first = features + query.start * COLUMN_GROUPS;
        int chunk = chunks_until(warp, FILL_WARPS, at.slot, pipeline.n_slots);
        Turning slot = at.slot.after(chunk, pipeline.n_slots);
        while (chunk < query.n_chunks()) {
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
            const Turning behind = slot.after(1, pipeline.n_slots);
            const int step = chunks_until(warp, FILL_WARPS, behind, pipeline.n_slots);
            slot = behind.after(step, pipeline.n_slots);
            chunk += 1 + step;
        }
    });
}

// The total over lanes of each of 8 numbers, of which lane 4 k + anything gets the k-th: at each step a lane hands on half
// of its numbers, and keeps the sums of the others.
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

// visit(first row, number of rows, whether these are kRunRows) for runs of a chunk's rows; the last is a constant where it
// is true, so that a loop over a whole run needs no comparisons.
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
        const int n_passing = pipeline.n_passing(query), n_chunks = query.n_chunks();
        int chunk = chunks_until(warp, MULTIPLY_WARPS, at.slot, n_slots);
        Turning slot = at.slot.after(chunk, n_slots);
        while (chunk < n_chunks) {
            const int row = chunk * ROWS_PER_CHUNK;
            wait(pipeline.filled + slot.place, slot.turn);
            multiply_chunk(pipeline.chunk(slot), min(ROWS_PER_CHUNK, query.n - row), vector, centre, products, row);
            __syncwarp();
            if (chunk < n_passing && lane == 0) arrive(pipeline.freed + slot.place);
            const Turning behind = slot.after(1, n_slots);
            const int step = chunks_until(warp, MULTIPLY_WARPS, behind, n_slots);
            slot = behind.after(step, n_slots);
            chunk += 1 + step;
        }
        __syncwarp();
        if (lane == 0) arrive(pipeline.multiplied + at.turn.place);
    });
}

// What the sums need of documents, by place.
struct Documents {
    const Place* places;
    const double* degree;
    const int* ranks;
    const double* weights;  // by row; null if all are 1
};

__device__ void sum(const Pipeline& pipeline, const Documents& documents, double* shared, double* scratch) {
    const Team team{static_cast<int>(threadIdx.x) - kFirstSumWarp * kWarp, SUM_WARPS * kWarp, kSumBarrier};
    if (pipeline.first_query == pipeline.last_query) return;
    // The next query's places are asked for while this one is summed, and loaded as soon as registers are free.
    int number = pipeline.first_query;
    long long next_start = pipeline.queries[number].start;
    int next_n = pipeline.queries[number].n;
    OwnPlaces next;
    next.load(team, documents.places + next_start, documents.degree + next_start, next_n);
    for_each_query(pipeline, [&](const Query& query, const Position& at) {
        const Pairs pairs{documents.places + query.start, documents.degree + query.start, documents.ranks + query.ranks,
                          query.n, query.n_levels, next};
        number = min(number + 1, pipeline.last_query - 1);
        next_start = pipeline.queries[number].start;
        next_n = pipeline.queries[number].n;
        const Workspace work = workspace_at(query.scratch >= 0 ? scratch + query.scratch : shared, query.n);
        const Factors factors = factors_of(pipeline, query, at, scratch);
        const auto weight = [&](int row) { return documents.weights ? documents.weights[query.start + row] : 1.0; };
        wait(pipeline.multiplied + at.turn.place, at.turn.turn);
        OwnPlaces::prefetch(team, documents.places + next_start, documents.degree + next_start, next_n);
        sum_partners(
            team, pairs, work,
            [&](int, const Place& document) { return factors[document.row] * weight(document.row); },
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

// Rows less the centre times their factors, of rows that lie one behind the other, to the total.
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
        const int n_passing = pipeline.n_passing(query), n_chunks = query.n_chunks();
        wait(pipeline.summed + at.turn.place, at.turn.turn);
        Turning slot = at.slot.after(n_passing, n_slots);
        int chunk = n_passing + chunks_until(warp, ADD_WARPS, slot, n_slots);
        slot = slot.after(chunk - n_passing, n_slots);
        while (chunk < n_chunks) {
            const int row = chunk * ROWS_PER_CHUNK;
            add_rows(pipeline.chunk(slot), min(ROWS_PER_CHUNK, query.n - row), centre, factors, row, total);
            __syncwarp();
            if (lane == 0) arrive(pipeline.freed + slot.place);
            const Turning behind = slot.after(1, n_slots);
            const int step = chunks_until(warp, ADD_WARPS, behind, n_slots);
            slot = behind.after(step, n_slots);
            chunk += 1 + step;
        }
        const float* first = reinterpret_cast<const float*>(features + query.start * COLUMN_GROUPS);
        for (int passed = warp; passed < n_passing; passed += ADD_WARPS)
            add_rows(first + passed * ROWS_PER_CHUNK * kColumns, ROWS_PER_CHUNK, centre, factors,
                     passed * ROWS_PER_CHUNK, total);
    });
    return total;
}

// total(column, sum) of row(0, column) ... row(n_rows - 1, column), by all threads of a block: each sums a part of the rows
// of a column; `room` takes the parts.
template <typename Row, typename Total>
__device__ void sum_by_block(double* room, int n_rows, Row row, Total total) {
    const int n_parts = max(1, static_cast<int>(blockDim.x) / kColumns), per_part = (n_rows + n_parts - 1) / n_parts;
    for (int k = threadIdx.x; k < n_parts * kColumns; k += blockDim.x) {
        const int part = k / kColumns, column = k % kColumns;
        double sum = 0.0;
#pragma unroll 8
        for (int j = part * per_part; j < min(n_rows, (part + 1) * per_part); ++j) sum += row(j, column);
        room[k] = sum;
    }
    __syncthreads();
    for (int column = threadIdx.x; column < kColumns; column += blockDim.x) {
        double sum = 0.0;
        for (int part = 0; part < n_parts; ++part) sum += room[part * kColumns + column];
        total(column, sum);
    }
}

// Whether all other blocks have written what this one will read.
__device__ bool is_last_block(unsigned* n_finished) {
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(n_finished, 1) == gridDim.x - 1;
        if (is_last) *n_finished = 0;
    }
    __syncthreads();
    __threadfence();
    return is_last;
}

}  // namespace

// product = 2 scale Xt AtA X (scale vector) (equation 13 without v and C).
// Threads: 32 (FILL_WARPS + MULTIPLY_WARPS + SUM_WARPS + ADD_WARPS); n_slots at least as many as warps have one task.
extern "C" __global__ void __launch_bounds__(kWarp*(kFirstFillWarp + FILL_WARPS), 1) hessian_vector(
    const float4* __restrict__ features,          // n_docs x COLUMN_GROUPS
    const float* __restrict__ centre,             // 4 COLUMN_GROUPS
    const double* __restrict__ scale,             // n_features
    const double* __restrict__ vector,            // n_features
    int n_features,
    const Place* __restrict__ places,             // n_docs
    const double* __restrict__ degree,            // n_docs
    const int* __restrict__ ranks,
    const double* __restrict__ document_weights,  // n_docs, or null if all are 1
    const Query* __restrict__ queries,            // those with pairs
    const int* __restrict__ block_ptr,            // gridDim.x + 1: the queries of each block
    int n_slots,                                  // chunks in shared memory
    int n_factors,                                // rows whose factors are in shared memory, a multiple of 4
    double* scratch,
    double* partial,                              // gridDim.x x 4 COLUMN_GROUPS
    unsigned* n_finished,                         // 0, and again at the end
    double* __restrict__ product) {               // n_features
    extern __shared__ float4 shared_groups[];
    const int n_turns = n_slots + 2 * MULTIPLY_WARPS;
    auto* filled = reinterpret_cast<unsigned long long*>(shared_groups + n_slots * kChunkGroups);
    auto *freed = filled + n_slots, *multiplied = freed + n_slots, *summed = multiplied + n_turns;
    float* factors = reinterpret_cast<float*>(summed + n_turns);
    double* workspace = reinterpret_cast<double*>(factors + n_factors);
    const Pipeline pipeline{shared_groups, filled,    freed,   multiplied,            summed,
                            factors,       n_slots,   n_factors, queries,             block_ptr[blockIdx.x],
                            block_ptr[blockIdx.x + 1]};
    pipeline.init();
    __syncthreads();

    const int warp = threadIdx.x / kWarp;
    LaneColumns<float> own_centre{};
    own_centre.for_each([&](float& number, int column) { number = centre[column]; });
    LaneColumns<double> total{};
    if (warp < kFirstMultiplyWarp) {
        total = add(pipeline, features, own_centre, scratch);
    } else if (warp < kFirstSumWarp) {
        LaneColumns<float> own_vector{};
        own_vector.for_each([&](float& number, int column) {
            if (column < n_features) number = static_cast<float>(vector[column] * scale[column]);
        });
        multiply(pipeline, own_vector, own_centre, scratch);
    } else if (warp < kFirstFillWarp) {
        sum(pipeline, {places, degree, ranks, document_weights}, workspace, scratch);
    } else if (threadIdx.x % kWarp == 0) {
        fill(pipeline, features);
    }
    __syncwarp();
    // The ring is empty now: its memory takes the sums of warps and of blocks.
    __syncthreads();
    double* sums = reinterpret_cast<double*>(shared_groups);
    if (warp < ADD_WARPS) total.for_each([&](double& number, int column) { sums[warp * kColumns + column] = number; });
    __syncthreads();
    double* own_partial = partial + static_cast<long long>(blockIdx.x) * kColumns;
    for (int column = threadIdx.x; column < kColumns; column += blockDim.x) {
        double sum = 0.0;
        for (int k = 0; k < ADD_WARPS; ++k) sum += sums[k * kColumns + column];
        own_partial[column] = sum;
    }
    if (!is_last_block(n_finished)) return;
    sum_by_block(
        sums, gridDim.x, [&](int block, int column) { return __ldcg(partial + block * kColumns + column); },
        [&](int column, double sum) {
            if (column < n_features) product[column] = 2.0 * scale[column] * sum;
        });
}

#endif
