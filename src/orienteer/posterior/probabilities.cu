// Probabilities from distances, their sums and lists: GPU twin of _scores_numba.py.  See tempered.cuh.

#include "tempered.cuh"

// out (T, D) = probabilities of rows first .. first + T.  Block 128 threads; grid (frames / (128 VECTOR), rows / 16).
extern "C" __global__ void responsibilities(const Half *__restrict__ below, long long stride,
                                            const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                            const float *__restrict__ lowest, const float *__restrict__ factor,
                                            int first, int T, int D, float *__restrict__ out)
{
    const int d = (blockIdx.x * blockDim.x + threadIdx.x) * VECTOR;
    if (d >= D) return;
    const bool aligned = is_aligned(out, D);
    Distances distances(below, stride, tile_of_row, offset, D, d);
    float lowest_d[VECTOR], factor_d[VECTOR], p[VECTOR];
    load_floats(lowest, d, D, false, 0.f, lowest_d);
    load_floats(factor, d, D, false, 0.f, factor_d);
    for (int start = blockIdx.y * 16; start < T; start += gridDim.y * 16) {
        for (int k = start; k < min(start + 16, T); ++k) {
            distances.of_row(first + k, p);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) p[i] = p[i] > lowest_d[i] ? factor_d[i] * exponential(p[i]) : 0.f;
            store_floats(out + (long long)k * D, d, D, aligned, p);
        }
    }
}

// out (K,) = sum over frames of the probabilities of each row.  A block of 128 threads has MASS_ROWS rows, for which
// thresholds and factors are read once.
enum { MASS_ROWS = 8, MASS_THREADS = 128 };
extern "C" __global__ void row_mass(const Half *__restrict__ below, long long stride,
                                    const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                    const float *__restrict__ lowest, const float *__restrict__ factor, int K, int D,
                                    double *__restrict__ out)
{
    __shared__ double part[MASS_ROWS][MASS_THREADS];
    const int first = blockIdx.x * MASS_ROWS, n_rows = min((int)MASS_ROWS, K - first);
    double total[MASS_ROWS] = {};
    for (int d = threadIdx.x * VECTOR; d < D; d += MASS_THREADS * VECTOR) {
        Distances distances(below, stride, tile_of_row, offset, D, d);
        float lowest_d[VECTOR], factor_d[VECTOR], distance[VECTOR];
        load_floats(lowest, d, D, is_aligned(lowest, D), 0.f, lowest_d);
        load_floats(factor, d, D, is_aligned(factor, D), 0.f, factor_d);
#pragma unroll
        for (int r = 0; r < MASS_ROWS; ++r) {
            if (r >= n_rows) break;
            distances.of_row(first + r, distance);
            float few = 0.f;  // float32 is accurate enough for VECTOR numbers, and saves conversions
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                if (d + i < D && distance[i] > lowest_d[i]) few = fmaf(factor_d[i], exponential(distance[i]), few);
            total[r] += few;
        }
    }
#pragma unroll
    for (int r = 0; r < MASS_ROWS; ++r) part[r][threadIdx.x] = total[r];
    for (int half = MASS_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            for (int r = 0; r < MASS_ROWS; ++r) part[r][threadIdx.x] += part[r][threadIdx.x + half];
    }
    __syncthreads();
    if (threadIdx.x < n_rows) out[first + threadIdx.x] = part[threadIdx.x][0];
}

__device__ __forceinline__ float distance_at(const Half *below, long long stride, const int *tile_of_row,
                                             const float *offset, int k, int D, int d)
{
    const int tile = tile_of_row[k];
    return tile < 0 ? MINUS_INFINITY : from_half(below[k * stride + d]) + offset[(long long)tile * D + d];
}

// Number of kept entries per chunk of 256 rows, counts (chunks, D).  One thread per frame and chunk.
extern "C" __global__ void count_kept(const Half *__restrict__ below, long long stride,
                                      const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                      const float *__restrict__ lowest, int K, int D, long long *__restrict__ counts)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x, end = min((int)blockIdx.y * 256 + 256, K);
    if (d >= D) return;
    const float lowest_d = lowest[d];
    int count = 0;
    for (int k = blockIdx.y * 256; k < end; ++k)
        count += distance_at(below, stride, tile_of_row, offset, k, D, d) > lowest_d;
    counts[(long long)blockIdx.y * D + d] = count;
}

// List the kept entries of each chunk from place (chunks, D) on: rows ascending within a frame.
extern "C" __global__ void list_kept(const Half *__restrict__ below, long long stride,
                                     const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                     const float *__restrict__ lowest, const float *__restrict__ factor, int K, int D,
                                     const long long *__restrict__ place, int *__restrict__ row,
                                     float *__restrict__ probability)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x, end = min((int)blockIdx.y * 256 + 256, K);
    if (d >= D) return;
    const float lowest_d = lowest[d], factor_d = factor[d];
    long long next = place[(long long)blockIdx.y * D + d];
    for (int k = blockIdx.y * 256; k < end; ++k) {
        const float distance = distance_at(below, stride, tile_of_row, offset, k, D, d);
        if (distance > lowest_d) {
            row[next] = k;
            probability[next] = factor_d * exponential(distance);
            ++next;
        }
    }
}

// out (T, D) = scores of a tile, recovered from its distances.  Block 128 threads; grid (frames / (128 VECTOR), T).
extern "C" __global__ void untempered(const Half *__restrict__ below, long long stride,
                                      const float *__restrict__ top, const float *__restrict__ log_prior,
                                      const float *__restrict__ beta, const float *__restrict__ reference, int T,
                                      int D, float *__restrict__ out)
{
    const int d = (blockIdx.x * blockDim.x + threadIdx.x) * VECTOR;
    if (d >= D) return;
    const bool aligned = is_aligned(out, D);
    float top_d[VECTOR], inverse[VECTOR], reference_d[VECTOR], x[VECTOR];
    load_floats(top, d, D, false, 0.f, top_d);
    load_floats(beta, d, D, false, 1.f, inverse);
    load_floats(reference, d, D, false, 0.f, reference_d);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) inverse[i] = 1.f / fmaxf(inverse[i], 1e-30f);
    for (int k = blockIdx.y; k < T; k += gridDim.y) {
        load_halves(below + k * stride + d, x);
        const float prior = log_prior[k];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) x[i] = fmaf(x[i] + top_d[i] - prior, inverse[i], reference_d[i]);
        store_floats(out + (long long)k * D, d, D, aligned, x);
    }
}
