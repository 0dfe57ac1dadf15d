// Sums of numbers that belong together: the GPU side of grouped_sums.py.
//
//   sums[c] = sum of values[order[i]] over start[c] <= i < start[c + 1]
//
// values  float32 or float64
// order   int32, places of the values, group after group
// start   (chunks + 1,) int64; a chunk is a part of one group
// sums    (chunks,) float64
//
// One block of 256 threads for each chunk.  Everything is added in a fixed order, so the result has the same bits
// in every run, which atomic additions would not give; and few groups do not make threads wait for each other.

template <typename T>
__device__ void sum_chunk(const T *__restrict__ values, const int *__restrict__ order,
                          const long long *__restrict__ start, double *__restrict__ sums)
{
    __shared__ double of_warp[8];
    double sum = 0.0;
    const long long end = start[blockIdx.x + 1];
    for (long long i = start[blockIdx.x] + threadIdx.x; i < end; i += blockDim.x) sum += (double)values[order[i]];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) sum += of_warp[w];
        sums[blockIdx.x] = sum;
    }
}

extern "C" __global__ void sum_float32(const float *__restrict__ values, const int *__restrict__ order,
                                       const long long *__restrict__ start, double *__restrict__ sums)
{
    sum_chunk(values, order, start, sums);
}

extern "C" __global__ void sum_float64(const double *__restrict__ values, const int *__restrict__ order,
                                       const long long *__restrict__ start, double *__restrict__ sums)
{
    sum_chunk(values, order, start, sums);
}
