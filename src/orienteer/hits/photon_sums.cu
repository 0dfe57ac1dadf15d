// Sums over the pixels and over the shots of a batch: the GPU twin of _photon_sums_numba.py.
//
//   sums[0][d] = sum_p K,  sums[1][d] = #(K >= lit_from),  sums[2][d] = sum_p w K     over used pixels
//   sums[p]   += sum_d factor[d] K                                                    over frames
//
// frames            (D, P) counts, or float32 signal in which NaN adds nothing
// used              (P,) uint8;  lit_from, weight (P,) float32;  factor (D,) float64
// sums              (3, D) or (P,) float64: whole numbers below 2^53 are exact
//
// sum_pixels has one block of 256 threads for each frame; sum_frames one thread for each pixel, so that neighbouring
// threads read neighbouring pixels.  The order of all sums is fixed: the same bits in every run.

template <typename T>
__device__ void pixels(const T *__restrict__ frames, const unsigned char *__restrict__ used,
                       const float *__restrict__ lit_from, const float *__restrict__ weight, int D, int P,
                       double *__restrict__ sums)
{
    __shared__ double of_warp[3][8];
    const int d = blockIdx.x;
    const T *frame = frames + (long long)d * P;
    double sum[3] = {0.0, 0.0, 0.0};
    for (int p = threadIdx.x; p < P; p += blockDim.x) {
        const T k = frame[p];
        if (!used[p] || k != k) continue;
        sum[0] += (double)k;
        sum[1] += (float)k >= lit_from[p] ? 1.0 : 0.0;
        sum[2] += (double)k * (double)weight[p];
    }
    for (int i = 0; i < 3; ++i) {
        for (int step = 16; step > 0; step /= 2) sum[i] += __shfl_down_sync(0xffffffffu, sum[i], step);
        if (threadIdx.x % 32 == 0) of_warp[i][threadIdx.x / 32] = sum[i];
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        double total = 0.0;
        for (int w = 0; w < 8; ++w) total += of_warp[threadIdx.x][w];
        sums[(long long)threadIdx.x * D + d] = total;
    }
}

template <typename T>
__device__ void frames_of(const T *__restrict__ frames, const double *__restrict__ factor, int D, int P,
                          double *__restrict__ sums)
{
    const int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= P) return;
    double sum = 0.0;
    for (int d = 0; d < D; ++d) {
        const double f = factor[d];
        if (f == 0.0) continue;
        const T k = frames[(long long)d * P + p];
        if (k == k) sum += f * (double)k;
    }
    sums[p] += sum;
}

#define KERNELS(NAME, T)                                                                                       \
    extern "C" __global__ void sum_pixels_##NAME(                                                              \
        const T *__restrict__ frames, const unsigned char *__restrict__ used, const float *__restrict__ lit_from, \
        const float *__restrict__ weight, int D, int P, double *__restrict__ sums)                             \
    {                                                                                                          \
        pixels(frames, used, lit_from, weight, D, P, sums);                                                    \
    }                                                                                                          \
    extern "C" __global__ void sum_frames_##NAME(const T *__restrict__ frames, const double *__restrict__ factor, \
                                                 int D, int P, double *__restrict__ sums)                      \
    {                                                                                                          \
        frames_of(frames, factor, D, P, sums);                                                                 \
    }

KERNELS(uint8, unsigned char)
KERNELS(uint16, unsigned short)
KERNELS(int32, int)
KERNELS(float32, float)
