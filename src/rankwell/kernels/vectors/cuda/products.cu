// Vector products: a warp for each document, a lane for each of the 32 sums. See kernels/vectors/rules.py.

namespace {

constexpr int LANES = 32;
constexpr unsigned ALL = 0xffffffffu;

// Lanes are added in pairs: l and l + 16, then l and l + 8, ... Lane 0 has the sum.
__device__ double sum_of_lanes(double value) {
  for (int half = LANES / 2; half > 0; half /= 2) value += __shfl_down_sync(ALL, value, half);
  return value;
}

}  // namespace

// values : float32 (n, 2), dot product and cosine; rows : the words of documents, `width` each
extern "C" __global__ void vector_products(const float* rows, long long width, const long long* docs, int n, int start,
                                           int dimension, int is_int8, const float* query, float* values) {
  const int candidate = (blockIdx.x * blockDim.x + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
  if (candidate >= n) return;
  const float* vector = rows + docs[candidate] * width + start;
  double scale = vector[0];
  const bool is_missing = isnan(scale);
  double dot = 0.0, square = 0.0, square_of_query = 0.0;
  if (!is_missing) {
    const signed char* bytes = reinterpret_cast<const signed char*>(vector + 1);
    for (int i = lane; i < dimension; i += LANES) {
      const double number = is_int8 ? static_cast<double>(bytes[i]) : static_cast<double>(vector[i]);
      const double own = query[i];
      dot += own * number;
      square += number * number;
      square_of_query += own * own;
    }
  }
  if (!is_int8) scale = 1.0;
  dot = sum_of_lanes(dot) * scale;
  square = sum_of_lanes(square) * (scale * scale);
  square_of_query = sum_of_lanes(square_of_query);
  if (lane > 0) return;
  const double length = sqrt(square_of_query * square);
  const float missing = nanf("");
  values[2 * candidate] = is_missing ? missing : static_cast<float>(dot);
  values[2 * candidate + 1] = is_missing ? missing : static_cast<float>(length > 0.0 ? dot / length : 0.0);
}
