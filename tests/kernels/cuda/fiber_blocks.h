// As much of CUDA as the kernels of trees use, on the host: a block is a process, so that static variables are its
// shared memory, and its threads are fibers of that process, which change at barriers and warp operations. Device
// memory is memory that processes share. x86-64 only.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
using std::max;
using std::min;
using std::signbit;

struct Index {
  unsigned x;
};
struct Fiber {
  void* stack_pointer;
  Index index;
  bool is_done;
};
struct Meeting {
  int arrived, times;
};

static Index blockIdx, blockDim, gridDim;
static std::vector<Fiber> fibers;
static Fiber* fiber;
static void* scheduler;
static Meeting of_block, of_warp[32];
static uint64_t lanes[32][32];
static std::function<void()>* body;
#define threadIdx (fiber->index)

extern "C" void change_fiber(void** from, void* to);
asm(".text\n.globl change_fiber\nchange_fiber:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

static void pause_fiber() { change_fiber(&fiber->stack_pointer, scheduler); }

static void run_fiber() {
  (*body)();
  fiber->is_done = true;
  pause_fiber();
  abort();
}

static void meet(Meeting& meeting, int n_members) {
  const int times = meeting.times;
  if (++meeting.arrived == n_members) {
    meeting.arrived = 0;
    ++meeting.times;
    return;
  }
  while (meeting.times == times) pause_fiber();
}

static void __syncthreads() { meet(of_block, static_cast<int>(blockDim.x)); }
static void __syncwarp(unsigned = 0) { meet(of_warp[threadIdx.x / 32], 32); }
static void __threadfence() { __sync_synchronize(); }
static void __threadfence_block() {}
static void __nanosleep(unsigned) {
  sched_yield();
  pause_fiber();
}

// What lane `source` gave.
template <class T>
T exchanged(T value, unsigned source) {
  const unsigned warp = threadIdx.x / 32;
  std::memcpy(&lanes[warp][threadIdx.x % 32], &value, sizeof(T));
  __syncwarp();
  std::memcpy(&value, &lanes[warp][source], sizeof(T));
  __syncwarp();
  return value;
}
template <class T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
  const unsigned lane = threadIdx.x % 32;
  return exchanged(value, lane / width * width + static_cast<unsigned>(source) % width);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
  return exchanged(value, (threadIdx.x % 32) ^ mask);
}
template <class T>
T __shfl_up_sync(unsigned, T value, int distance) {
  const int lane = threadIdx.x % 32;
  return exchanged(value, lane >= distance ? lane - distance : lane);
}
static unsigned __ballot_sync(unsigned, bool is_set) {
  const unsigned warp = threadIdx.x / 32;
  lanes[warp][threadIdx.x % 32] = is_set;
  __syncwarp();
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= static_cast<unsigned>(lanes[warp][lane]) << lane;
  __syncwarp();
  return bits;
}

// The result of `reduce` over the warp.
template <class Reduce>
unsigned reduced(unsigned value, Reduce reduce) {
  for (int apart = 16; apart > 0; apart /= 2) value = reduce(value, exchanged(value, (threadIdx.x % 32) ^ apart));
  return value;
}
static unsigned __reduce_max_sync(unsigned, unsigned value) {
  return reduced(value, [](unsigned x, unsigned y) { return max(x, y); });
}
static unsigned __reduce_min_sync(unsigned, unsigned value) {
  return reduced(value, [](unsigned x, unsigned y) { return min(x, y); });
}

template <class T, class More>
T atomicAdd(T* number, More more) {
  return __atomic_fetch_add(number, static_cast<T>(more), __ATOMIC_SEQ_CST);
}
static int atomicMax(int* number, int other) {
  int known = __atomic_load_n(number, __ATOMIC_SEQ_CST);
  while (known < other &&
         !__atomic_compare_exchange_n(number, &known, other, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return known;
}
static unsigned atomicMax(unsigned* number, unsigned other) {
  unsigned known = __atomic_load_n(number, __ATOMIC_SEQ_CST);
  while (known < other &&
         !__atomic_compare_exchange_n(number, &known, other, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return known;
}

template <class T>
T __ldg(const T* place) {
  return *place;
}
template <class T>
T __ldcg(const T* place) {
  return *place;
}

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) longlong2 {
  long long x, y;
};
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static float2 make_float2(float x, float y) { return {x, y}; }
static int2 make_int2(int x, int y) { return {x, y}; }
static double2 make_double2(double x, double y) { return {x, y}; }
static longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
static unsigned __funnelshift_r(unsigned low, unsigned high, int shift) {
  return static_cast<unsigned>(((static_cast<uint64_t>(high) << 32) | low) >> (shift & 31));
}
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static double __dadd_rn(double x, double y) { return x + y; }
static double __dsub_rn(double x, double y) { return x - y; }
static double __dmul_rn(double x, double y) { return x * y; }
static double __ddiv_rn(double x, double y) { return x / y; }
static float __fadd_rn(float x, float y) { return x + y; }
static long long __double2ll_rn(double x) { return std::llrint(x); }
static unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
static float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
static int __float_as_int(float x) { return static_cast<int>(__float_as_uint(x)); }
static float __int_as_float(int bits) { return __uint_as_float(static_cast<unsigned>(bits)); }
static long long __double_as_longlong(double x) {
  long long bits;
  std::memcpy(&bits, &x, 8);
  return bits;
}
static double __longlong_as_double(long long bits) {
  double x;
  std::memcpy(&x, &bits, 8);
  return x;
}

alignas(16) static int4 dynamic_memory[1 << 14];

static void run_block(int n_threads) {
  constexpr size_t STACK = 1 << 16;
  fibers.resize(n_threads);
  for (int i = 0; i < n_threads; ++i) {
    char* stack = static_cast<char*>(aligned_alloc(16, STACK));
    void** top = reinterpret_cast<void**>(stack + STACK) - 2;
    *top = reinterpret_cast<void*>(run_fiber);
    std::memset(top - 6, 0, 6 * sizeof(void*));
    fibers[i] = {top - 6, {static_cast<unsigned>(i)}, false};
  }
  for (int n_left = n_threads; n_left > 0;) {
    n_left = 0;
    for (Fiber& next : fibers) {
      if (next.is_done) continue;
      fiber = &next;
      change_fiber(&scheduler, next.stack_pointer);
      n_left += !next.is_done;
    }
  }
}

// Run a kernel in so many blocks; whether all of them ended well.
template <class Kernel>
bool run_blocks(int n_blocks, int n_threads, Kernel kernel) {
  std::vector<pid_t> blocks;
  for (int block = 0; block < n_blocks; ++block) {
    const pid_t child = fork();
    if (child == 0) {
      blockIdx.x = block;
      blockDim.x = n_threads;
      gridDim.x = n_blocks;
      std::memset(dynamic_memory, 0xa5, sizeof(dynamic_memory));
      std::function<void()> call = kernel;
      body = &call;
      run_block(n_threads);
      _exit(0);
    }
    blocks.push_back(child);
  }
  bool all_well = true;
  for (const pid_t block : blocks) {
    int status = 1;
    waitpid(block, &status, 0);
    all_well = all_well && status == 0;
  }
  return all_well;
}
