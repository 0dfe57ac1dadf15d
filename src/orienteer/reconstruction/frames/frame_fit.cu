// Probability of frames at their poses: the GPU twin of _frame_fit_numba.py.
//
//   out[d] = sum_p  K ln(lambda / (1 + e lambda)) + sum_{i<K} ln(1 + i e) - ln(1 + e lambda) / e
//
// counts, expected  (D, S) float32; where expected is 0 the pixel does not count
// dispersion        (S,) float64, or (D, S) with a stride of S from frame to frame
// out               (D,) float64
//
// One block of 256 threads for each frame, which adds in a fixed order.

__device__ double log_rising(double K, double e)
{
    if (K * e < 1e-3) {
        const double pairs = K * (K - 1.0) / 2.0;
        return e * pairs * (1.0 - e * (2.0 * K - 1.0) / 6.0 + e * e * pairs / 3.0);
    }
    if (K <= 32.0 && floor(K) == K) {
        double product = 1.0;
        for (int i = 1; i < (int)K; ++i) product *= 1.0 + i * e;
        return log(product);
    }
    const double r = 1.0 / e;
    return lgamma(K + r) - lgamma(r) - K * log(r);
}

extern "C" __global__ void log_probability(const float *__restrict__ counts, const float *__restrict__ expected,
                                           const double *__restrict__ dispersion, long long stride, int S,
                                           double *__restrict__ out)
{
    __shared__ double of_warp[8];
    const long long d = blockIdx.x;
    double sum = 0.0;
    for (int p = threadIdx.x; p < S; p += blockDim.x) {
        const double lambda = expected[d * S + p], e = dispersion[d * stride + p], y = e * lambda;
        const double K = counts[d * S + p];
        // The series of ln(1 + y) / y where the logarithm would cancel.
        sum -= y > 1e-6 ? log1p(y) / e : lambda * (1.0 - y / 2.0);
        if (K > 0.0 && lambda > 0.0) sum += K * (log(lambda) - log1p(y)) + log_rising(K, e);
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += of_warp[w];
        out[d] = sum;
    }
}
