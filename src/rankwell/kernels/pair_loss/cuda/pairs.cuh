// The support pairs of one query, and room for sums over them.
//
// Vocabulary. Documents of a query are in ascending order of score; `place` counts them in that order. A pair of a
// better document a and a worse one b is a support pair if s_a - s_b < 1, a comparison that rounds the same seen from
// either document. Partners above the document at `place` are better ones at places < upper[place], partners below it
// worse ones at places >= lower[place]. See kernels/pair_loss/cpu/sums.py.
//
// Macros: METHOD  0: level by level, O(documents * levels); 1: a wavelet tree over levels, O(documents * log levels)

#include "declarations.h"  // made by kernels/pair_loss/declarations.py
#include "team.cuh"

namespace {

// What a thread holds in registers of its first places, team.thread, + team.size, ...: loaded early, because global
// memory is far.
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
  return {base, base,     base + n,    base + 2 * n, base + 3 * n + 1, reinterpret_cast<int4*>(base + 4 * n + 2),
          rest, rest + n, rest + 2 * n};
}

__device__ int bits_of(int n_levels) { return n_levels <= 1 ? 0 : 32 - __clz(n_levels - 1); }

}  // namespace
