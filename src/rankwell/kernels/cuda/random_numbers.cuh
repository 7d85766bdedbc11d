// Random numbers from counters: those of kernels/cpu/random_numbers.py.

// SplitMix64's finaliser.
__device__ inline unsigned long long mixed(unsigned long long x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// A random number in (0, 1) for the counter (a, b) of the stream `seed`.
__device__ inline double random_unit(unsigned long long seed, unsigned long long a, unsigned long long b) {
  constexpr unsigned long long GOLDEN = 0x9E3779B97F4A7C15ull;
  const unsigned long long bits = mixed(mixed(seed + GOLDEN * (a + 1)) + GOLDEN * (b + 1));
  return __dmul_rn(__dadd_rn(static_cast<double>(bits >> 11), 0.5), 0x1p-53);
}
