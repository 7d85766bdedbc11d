// As much of CUDA as network_training.cu uses, on the host: a block is a process, so that static variables are its
// shared memory, and its threads (one warp) are threads. Device memory is memory that processes share.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __logf logf
using std::max;
using std::min;

static thread_local struct {
  int x;
} threadIdx;
static struct {
  int x;
} blockIdx, blockDim, gridDim;
static std::barrier<>* of_block;
static double lanes[32];
alignas(16) static float dynamic_memory[1 << 20];

static void __syncthreads() { of_block->arrive_and_wait(); }
static void __threadfence() { __sync_synchronize(); }
static void __nanosleep(unsigned) { sched_yield(); }
static unsigned atomicAdd(unsigned* number, unsigned more) {
  return __atomic_fetch_add(number, more, __ATOMIC_SEQ_CST);
}
static unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

template <class T>
void __stcg(T* place, T value) {
  *static_cast<volatile T*>(place) = value;
}

template <class T>
T __ldcg(const T* place) {
  return *static_cast<const volatile T*>(place);
}

template <class T>
T __shfl_down_sync(unsigned, T value, int distance) {
  std::memcpy(&lanes[threadIdx.x], &value, sizeof(T));
  __syncthreads();
  if (threadIdx.x + distance < 32) std::memcpy(&value, &lanes[threadIdx.x + distance], sizeof(T));
  __syncthreads();
  return value;
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
      std::barrier<> barrier(n_threads);
      of_block = &barrier;
      std::vector<std::thread> threads;
      for (int i = 0; i < n_threads; ++i) {
        threads.emplace_back([=] {
          threadIdx.x = i;
          kernel();
        });
      }
      for (std::thread& thread : threads) thread.join();
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
