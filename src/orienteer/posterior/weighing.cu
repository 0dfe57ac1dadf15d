// What frames deposit into the merge for a tile of rows, directly from the distances.  See tempered.cuh.
//
//   Q_kd         = reference_d + (distance_kd + top_d - log_prior_k) / beta_d                    the score again
//   numerator_kd = p_kd weight_d (max(square_k + slope Q_kd, 0) inverse_d)^1/2                  slope 0: p_kd weight_d
//   of_rows      = sum over d of p_kd weight_d row_factor_d, and of p_kd counted_d if asked for
//   of_frames    = sum over k of p_kd signal_k
//
// numerator (T, width) float16, times scale; width is a multiple of 8; numbers beyond the last frame are never read.
// of_rows (1 or 2, parts, T) float32: a part is the frames of a block.   of_frames (chunks, D) float32: 32 rows each.
// One pass over the distances replaces four passes over tables of float32.

#include "tempered.cuh"

enum { THREADS = 128, CHUNK = 32 };

__device__ __forceinline__ float over_warp(float x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffffu, x, step);
    return x;
}

// Block THREADS threads; grid (frames / (THREADS VECTOR), rows / CHUNK).
extern "C" __global__ void __launch_bounds__(THREADS)
weigh(const Half *__restrict__ below, long long stride, const int *__restrict__ tile_of_row,
      const float *__restrict__ offset, const float *__restrict__ lowest, const float *__restrict__ factor,
      const float *__restrict__ top, const float *__restrict__ reference, const float *__restrict__ beta,
      const float *__restrict__ log_prior, const double *__restrict__ square, const double *__restrict__ signal,
      const float *__restrict__ inverse, const float *__restrict__ weight, const float *__restrict__ row_factor,
      const float *__restrict__ counted, float slope, float scale, int first, int T, int D, int width,
      Half *__restrict__ numerator, float *__restrict__ of_rows, float *__restrict__ of_frames)
{
    __shared__ float row_part[2][CHUNK][THREADS / 32];
    const int d = (blockIdx.x * THREADS + threadIdx.x) * VECTOR, start = blockIdx.y * CHUNK;
    const int n_rows = min((int)CHUNK, T - start), lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const bool there = d < D;
    Distances distances(below, stride, tile_of_row, offset, D, d);
    float lowest_d[VECTOR], factor_d[VECTOR], base[VECTOR], per_beta[VECTOR], root[VECTOR], by_row[VECTOR];
    float by_count[VECTOR], total[VECTOR] = {};
    load_floats(lowest, d, D, false, 0.f, lowest_d);
    load_floats(factor, d, D, false, 0.f, factor_d);
    load_floats(row_factor, d, D, false, 0.f, by_row);
    load_floats(weight, d, D, false, 0.f, root);
    if (counted) load_floats(counted, d, D, false, 0.f, by_count);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        by_row[i] *= root[i];
        root[i] *= scale;
        base[i] = per_beta[i] = 0.f;
        if (slope != 0.f && d + i < D) {
            // slope Q = base + per_beta (distance - log_prior)
            per_beta[i] = slope / fmaxf(beta[d + i], 1e-30f);
            base[i] = fmaf(per_beta[i], top[d + i], slope * reference[d + i]);
            root[i] *= sqrtf(inverse[d + i]);
        }
    }
    for (int r = 0; r < n_rows; ++r) {
        const int k = start + r;
        float p[VECTOR], value[VECTOR], in_row = 0.f, in_count = 0.f;
        if (there) {
            const float signal_k = (float)signal[k], square_k = (float)square[k], prior = log_prior[k];
            distances.of_row(first + k, p);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                const float distance = p[i];
                p[i] = distance > lowest_d[i] ? factor_d[i] * exponential(distance) : 0.f;
                value[i] = p[i] * root[i];
                if (slope != 0.f && p[i] > 0.f)
                    value[i] *= sqrtf(fmaxf(square_k + fmaf(per_beta[i], distance - prior, base[i]), 0.f));
                total[i] = fmaf(p[i], signal_k, total[i]);
                in_row = fmaf(p[i], by_row[i], in_row);
                if (counted) in_count = fmaf(p[i], by_count[i], in_count);
            }
            store_halves(numerator + (long long)k * width + d, value);
        }
        in_row = over_warp(in_row);
        if (lane == 0) row_part[0][r][warp] = in_row;
        if (counted) {
            in_count = over_warp(in_count);
            if (lane == 0) row_part[1][r][warp] = in_count;
        }
    }
    if (there) store_floats(of_frames + (long long)blockIdx.y * D, d, D, is_aligned(of_frames, D), total);
    __syncthreads();
    const int which = threadIdx.x / CHUNK, r = threadIdx.x % CHUNK;
    if (r < n_rows && which < (counted ? 2 : 1)) {
        float sum = 0.f;
#pragma unroll
        for (int w = 0; w < THREADS / 32; ++w) sum += row_part[which][r][w];
        of_rows[((long long)which * gridDim.x + blockIdx.x) * T + start + r] = sum;
    }
}
