// Scores of tiles stored as distances, and counts for thresholds: GPU twin of _scores_numba.py.  See tempered.cuh.

#include "tempered.cuh"
#include "top_key.cuh"

#define BINS_PER_NAT 4.f
#define N_BINS 128

__device__ __forceinline__ float tempered(float score, float reference, float beta, float log_prior)
{
    return fmaf(beta, score - reference, log_prior);
}

// Scores of VECTOR frames, from scores (LAW 0) or from products by a law (ScoreLaw), in float64 and rounded once.
// Numbers beyond the last frame do not change.
//   LAW 1   S_kd = product_kd - per_frame_d per_row_k
//   LAW 2   S_kd = number (product_kd^2 per_frame_d - per_row_k), 0 if per_frame_d is 0
#ifndef LAW
#define LAW 0
#endif
struct Law {
    const double *per_row, *per_frame;
    double number;
};

struct Scores {
    Law law;
    double per_frame[VECTOR];

    __device__ __forceinline__ Scores(const Law &law_, int d, int D) : law(law_)
    {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) per_frame[i] = LAW && d + i < D ? law.per_frame[d + i] : 0.;
    }

    __device__ __forceinline__ void of_row(int k, int d, int D, float *score) const
    {
#if LAW
        const double per_row = law.per_row[k];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            if (d + i >= D) continue;
            const double product = score[i];
            if (LAW == 1) score[i] = (float)fma(-per_frame[i], per_row, product);
            if (LAW == 2)
                score[i] = per_frame[i] > 0. ? (float)(law.number * (product * product * per_frame[i] - per_row)) : 0.f;
        }
#endif
    }
};

// before (D,) = key of the best before this tile, 0 if there is none; key (D,), that of the tile, starts at 0.
// One thread per frame.
extern "C" __global__ void begin_key(int D, const float *__restrict__ top, const long long *__restrict__ best_row,
                                     Key *__restrict__ before, Key *__restrict__ key)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    before[d] = top[d] > NOTHING ? key_of(top[d], (int)best_row[d]) : 0;
    key[d] = 0;
}

// Raise key (D,) to the best of a tile.  Block (64, 4) threads; grid (frames / (64 VECTOR), rows / 64).
extern "C" __global__ void raise_top(const float *__restrict__ scores, int T, int D, int first_row,
                                     const double *__restrict__ per_row, const double *__restrict__ per_frame,
                                     double number, const float *__restrict__ reference,
                                     const float *__restrict__ log_prior, const float *__restrict__ beta,
                                     Key *__restrict__ key)
{
    __shared__ Key best[4][VECTOR][64];
    const int d = (blockIdx.x * 64 + threadIdx.x) * VECTOR, start = blockIdx.y * 64, end = min(start + 64, T);
    const bool aligned = is_aligned(scores, D);
    Key own[VECTOR] = {};
    if (d < D) {
        const Scores law({per_row, per_frame, number}, d, D);
        float reference_d[VECTOR], beta_d[VECTOR], score[VECTOR];
        load_floats(reference, d, D, false, 0.f, reference_d);
        load_floats(beta, d, D, false, 0.f, beta_d);
        for (int k = start + threadIdx.y; k < end; k += 4) {
            load_floats(scores + (long long)k * D, d, D, aligned, MINUS_INFINITY, score);
            law.of_row(k, d, D, score);
            const float prior = log_prior[k];
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                const float x = tempered(score[i], reference_d[i], beta_d[i], prior);
                // Leaves out -inf and NaN.
                if (x > NOTHING) own[i] = max(own[i], key_of(x, first_row + k));
            }
        }
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) best[threadIdx.y][i][threadIdx.x] = own[i];
    __syncthreads();
    if (threadIdx.y == 0) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            for (int y = 1; y < 4; ++y) own[i] = max(own[i], best[y][i][threadIdx.x]);
            if (d + i < D && own[i]) atomicMax(key + d + i, own[i]);
        }
    }
}

// Store a tile and sum e^below and below e^below per chunk of 64 rows: totals, moments (chunks, D).
// tile_top (D,) gets the maximum that ``below`` is relative to: the tile's own, not the highest so far, so that
// earlier tiles change no bit.  Block and grid as above.
extern "C" __global__ void store_tile(const float *__restrict__ scores, int T, int D, int first_row,
                                      const double *__restrict__ per_row, const double *__restrict__ per_frame,
                                      double number, const float *__restrict__ reference,
                                      const float *__restrict__ log_prior, const float *__restrict__ beta,
                                      const Key *__restrict__ key, const Key *__restrict__ before,
                                      Half *__restrict__ below, long long stride, float *__restrict__ tile_top,
                                      float *__restrict__ best_score, float *__restrict__ totals,
                                      float *__restrict__ moments)
{
    __shared__ float part_total[4][VECTOR][64], part_moment[4][VECTOR][64];
    const int d = (blockIdx.x * 64 + threadIdx.x) * VECTOR, start = blockIdx.y * 64, end = min(start + 64, T);
    const bool aligned = is_aligned(scores, D);
    float total[VECTOR] = {}, moment[VECTOR] = {};
    if (d < D) {
        const Scores law({per_row, per_frame, number}, d, D);
        float reference_d[VECTOR], beta_d[VECTOR], top[VECTOR], score[VECTOR], distance[VECTOR];
        int best_row[VECTOR];
        load_floats(reference, d, D, false, 0.f, reference_d);
        load_floats(beta, d, D, false, 0.f, beta_d);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const Key key_d = d + i < D ? key[d + i] : 0;
            top[i] = value_of(key_d);
            const bool is_best = d + i < D && key_d > before[d + i];
            best_row[i] = is_best ? (int)(0xffffffffu - (unsigned)key_d) : -1;
            if (blockIdx.y == 0 && threadIdx.y == 0 && d + i < D) tile_top[d + i] = top[i];
        }
        for (int k = start + threadIdx.y; k < end; k += 4) {
            load_floats(scores + (long long)k * D, d, D, aligned, MINUS_INFINITY, score);
            law.of_row(k, d, D, score);
            const float prior = log_prior[k];
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                distance[i] = tempered(score[i], reference_d[i], beta_d[i], prior) - top[i];
                if (!(distance[i] > NOTHING)) distance[i] = MINUS_INFINITY;
                if (first_row + k == best_row[i]) best_score[d + i] = score[i];
                const float p = exponential(distance[i]);
                total[i] += p;
                if (p > 0.f) moment[i] = fmaf(p, distance[i], moment[i]);
            }
            store_halves(below + (first_row + k) * stride + d, distance);
        }
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        part_total[threadIdx.y][i][threadIdx.x] = total[i];
        part_moment[threadIdx.y][i][threadIdx.x] = moment[i];
    }
    __syncthreads();
    if (threadIdx.y == 0) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            for (int y = 1; y < 4; ++y) {
                total[i] += part_total[y][i][threadIdx.x];
                moment[i] += part_moment[y][i][threadIdx.x];
            }
            if (d + i < D) {
                totals[(long long)blockIdx.y * D + d + i] = total[i];
                moments[(long long)blockIdx.y * D + d + i] = moment[i];
            }
        }
    }
}

// Sum the chunks of a tile, total and moment (D,), and update the best of all tiles so far.  One thread per frame.
extern "C" __global__ void sum_tile(int D, int chunks, const Key *__restrict__ before, const Key *__restrict__ key,
                                    const float *__restrict__ totals, const float *__restrict__ moments,
                                    double *__restrict__ total, double *__restrict__ moment, float *__restrict__ top,
                                    long long *__restrict__ best_row)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    double sum = 0., weighted = 0.;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        sum += totals[(long long)chunk * D + d];
        weighted += moments[(long long)chunk * D + d];
    }
    total[d] = sum;
    moment[d] = weighted;
    if (key[d] <= before[d]) return;
    const Key best = key[d];
    top[d] = value_of(best);
    best_row[d] = 0xffffffffu - (unsigned)best;
}

// Number of entries per bin of distance, counts (N_BINS + 1, D).  Block (32, 8); grid (frames / (32 VECTOR), rows / 1024).
extern "C" __global__ void count_distances(const Half *__restrict__ below, long long stride,
                                           const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                           int K, int D, int *__restrict__ counts)
{
    // One memory bank per thread of a warp, so that accesses do not conflict.  Two frames share a 32-bit number: each
    // counts at most 1024 rows.
    enum { PAIRS = (VECTOR + 1) / 2 };
    __shared__ unsigned own[N_BINS + 1][PAIRS][32];
    for (int bin = threadIdx.y; bin <= N_BINS; bin += 8)
        for (int pair = 0; pair < PAIRS; ++pair) own[bin][pair][threadIdx.x] = 0;
    __syncthreads();
    const int d = (blockIdx.x * 32 + threadIdx.x) * VECTOR, start = blockIdx.y * 1024, end = min(start + 1024, K);
    if (d < D) {
        Distances distances(below, stride, tile_of_row, offset, D, d);
        float distance[VECTOR];
        for (int k = start + threadIdx.y; k < end; k += 8) {
            distances.of_row(k, distance);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                if (d + i < D && distance[i] > MINUS_INFINITY) {
                    const float place = -distance[i] * BINS_PER_NAT;
                    const int bin = place < (float)N_BINS ? (int)place : N_BINS;
                    atomicAdd(&own[bin][i / 2][threadIdx.x], i % 2 ? 0x10000u : 1u);
                }
            }
        }
    }
    __syncthreads();
    for (int bin = threadIdx.y; bin <= N_BINS; bin += 8)
        for (int i = 0; i < VECTOR; ++i) {
            const unsigned both = own[bin][i / 2][threadIdx.x], count = i % 2 ? both >> 16 : both & 0xffffu;
            if (d + i < D && count) atomicAdd(counts + (long long)bin * D + d + i, (int)count);
        }
}

// Sum of exp(distance) above the threshold over rows first .. last of a tile, sums (parts, D).  Block (64, 4); grid
// (frames / (64 VECTOR), parts).  No part crosses a tile, so it does not matter which other tiles this rank has.
extern "C" __global__ void kept_sums(const Half *__restrict__ below, long long stride,
                                     const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                     const float *__restrict__ lowest, const int *__restrict__ first,
                                     const int *__restrict__ last, int D, double *__restrict__ sums)
{
    __shared__ double part[4][VECTOR][64];
    const int d = (blockIdx.x * 64 + threadIdx.x) * VECTOR, start = first[blockIdx.y], end = last[blockIdx.y];
    float total[VECTOR] = {};
    if (d < D) {
        Distances distances(below, stride, tile_of_row, offset, D, d);
        float lowest_d[VECTOR], distance[VECTOR];
        load_floats(lowest, d, D, false, 0.f, lowest_d);
        for (int k = start + threadIdx.y; k < end; k += 4) {
            distances.of_row(k, distance);
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                if (distance[i] > lowest_d[i]) total[i] += exponential(distance[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) part[threadIdx.y][i][threadIdx.x] = total[i];
    __syncthreads();
    if (threadIdx.y == 0) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (d + i < D)
                sums[(long long)blockIdx.y * D + d + i] =
                    (part[0][i][threadIdx.x] + part[1][i][threadIdx.x]) +
                    (part[2][i][threadIdx.x] + part[3][i][threadIdx.x]);
    }
}
