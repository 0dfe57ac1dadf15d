// Tempered scores kept as distances below a maximum, and probabilities from them: GPU twin of _scores_numba.py.
//
//   x_kd = beta_d (S_kd - reference_d) + log_prior_k            float32
//   below_kd = x_kd - top_d at the time of its tile             float16, <= 0
//   distance_kd = below_kd + offset_td,  offset_td = top_d then - top_d in the end,  t the tile of row k
//   p_kd = factor_d exp(distance_kd) where distance_kd > lowest_d, else 0
//
// scores (T, D) float32    below (K, D) float16    tile_of_row (K,) int32, -1: never added    offset (tiles, D)
// Rows of ``below`` begin at multiples of stride, itself a multiple of 8.
// Frames lie along x, so that neighbouring threads read neighbouring numbers; rows are cut into chunks.  A thread has
// VECTOR neighbouring frames, which it reads and writes as one vector where rows begin at multiples of it.
// Sums over rows go chunk by chunk into arrays that are added in their order; counts and maxima are whole
// numbers: every result is the same in each run.

#ifndef VECTOR
#define VECTOR 4
#endif

typedef unsigned long long Key;
typedef unsigned short Half;

#define NOTHING (-3e38f)  // below all scores
#define BINS_PER_NAT 4.f
#define N_BINS 128
#define MINUS_INFINITY __int_as_float(0xff800000)

__device__ __forceinline__ Half to_half(float value)
{
    Half half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

__device__ __forceinline__ float from_half(Half half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}

// A maximum and its row in one number that grows with the maximum and, among equals, for lower rows.
__device__ __forceinline__ Key key_of(float x, int row)
{
    const unsigned bits = __float_as_uint(x);
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ((Key)ordered << 32) | (0xffffffffu - (unsigned)row);
}

__device__ __forceinline__ float value_of(Key key)
{
    if (key == 0) return NOTHING;
    const unsigned ordered = (unsigned)(key >> 32);
    return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}

__device__ __forceinline__ float tempered(float score, float reference, float beta, float log_prior)
{
    return fmaf(beta, score - reference, log_prior);
}

// Good to 1e-5 of itself wherever it is a normal number: below lies within 87 nats, the rest is as good as 0.
__device__ __forceinline__ float exponential(float x) { return __expf(x); }

// VECTOR numbers from a multiple of VECTOR on.
__device__ __forceinline__ void load_halves(const Half *at, float *x)
{
#if VECTOR == 4
    const uint2 bits = *reinterpret_cast<const uint2 *>(at);
    x[0] = from_half((Half)(bits.x & 0xffffu));
    x[1] = from_half((Half)(bits.x >> 16));
    x[2] = from_half((Half)(bits.y & 0xffffu));
    x[3] = from_half((Half)(bits.y >> 16));
#elif VECTOR == 2
    const unsigned bits = *reinterpret_cast<const unsigned *>(at);
    x[0] = from_half((Half)(bits & 0xffffu));
    x[1] = from_half((Half)(bits >> 16));
#else
    x[0] = from_half(*at);
#endif
}

// What lies beyond the last frame goes to the end of the row, where nobody reads it.
__device__ __forceinline__ void store_halves(Half *at, const float *x)
{
#if VECTOR == 4
    uint2 bits;
    bits.x = to_half(x[0]) | (unsigned)to_half(x[1]) << 16;
    bits.y = to_half(x[2]) | (unsigned)to_half(x[3]) << 16;
    *reinterpret_cast<uint2 *>(at) = bits;
#elif VECTOR == 2
    *reinterpret_cast<unsigned *>(at) = to_half(x[0]) | (unsigned)to_half(x[1]) << 16;
#else
    *at = to_half(x[0]);
#endif
}

__device__ __forceinline__ bool is_aligned(const float *rows, int D)
{
    return D % VECTOR == 0 && (unsigned long long)rows % (4 * VECTOR) == 0;
}

// Numbers of frames d .. d + VECTOR of a row of D; beyond its end they are ``rest``.
__device__ __forceinline__ void load_floats(const float *row, int d, int D, bool aligned, float rest, float *x)
{
#if VECTOR == 4
    if (aligned) {
        const float4 v = *reinterpret_cast<const float4 *>(row + d);
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        return;
    }
#elif VECTOR == 2
    if (aligned) {
        const float2 v = *reinterpret_cast<const float2 *>(row + d);
        x[0] = v.x, x[1] = v.y;
        return;
    }
#endif
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) x[i] = d + i < D ? row[d + i] : rest;
}

__device__ __forceinline__ void store_floats(float *row, int d, int D, bool aligned, const float *x)
{
#if VECTOR == 4
    if (aligned) {
        *reinterpret_cast<float4 *>(row + d) = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
#elif VECTOR == 2
    if (aligned) {
        *reinterpret_cast<float2 *>(row + d) = make_float2(x[0], x[1]);
        return;
    }
#endif
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        if (d + i < D) row[d + i] = x[i];
}

// key (D,) of the best before a tile; 0 where there is none.  One thread per frame.
extern "C" __global__ void begin_key(int D, const float *__restrict__ top, const double *__restrict__ total,
                                     const long long *__restrict__ best_row, Key *__restrict__ key)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d < D) key[d] = total[d] > 0. ? key_of(top[d], (int)best_row[d]) : 0;
}

// Raise key (D,) to the best of a tile.  Block (64, 4) threads; grid (frames / (64 VECTOR), rows / 64).
extern "C" __global__ void raise_top(const float *__restrict__ scores, int T, int D, int first_row,
                                     const float *__restrict__ reference, const float *__restrict__ log_prior,
                                     const float *__restrict__ beta, Key *__restrict__ key)
{
    __shared__ Key best[4][VECTOR][64];
    const int d = (blockIdx.x * 64 + threadIdx.x) * VECTOR, start = blockIdx.y * 64, end = min(start + 64, T);
    const bool aligned = is_aligned(scores, D);
    Key own[VECTOR] = {};
    if (d < D) {
        float reference_d[VECTOR], beta_d[VECTOR], score[VECTOR];
        load_floats(reference, d, D, false, 0.f, reference_d);
        load_floats(beta, d, D, false, 0.f, beta_d);
        for (int k = start + threadIdx.y; k < end; k += 4) {
            load_floats(scores + (long long)k * D, d, D, aligned, MINUS_INFINITY, score);
            const float prior = log_prior[k];
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) {
                const float x = tempered(score[i], reference_d[i], beta_d[i], prior);
                // Neither -inf nor what is not a number.
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

// Keep a tile and sum e^below and below e^below per chunk of 64 rows: totals, moments (chunks, D).
// tile_top (D,) gets the maximum that ``below`` is measured from.  Block and grid as above.
extern "C" __global__ void store_tile(const float *__restrict__ scores, int T, int D, int first_row,
                                      const float *__restrict__ reference, const float *__restrict__ log_prior,
                                      const float *__restrict__ beta, const Key *__restrict__ key,
                                      Half *__restrict__ below, long long stride, float *__restrict__ tile_top,
                                      float *__restrict__ best_score, float *__restrict__ totals,
                                      float *__restrict__ moments)
{
    __shared__ float part_total[4][VECTOR][64], part_moment[4][VECTOR][64];
    const int d = (blockIdx.x * 64 + threadIdx.x) * VECTOR, start = blockIdx.y * 64, end = min(start + 64, T);
    const bool aligned = is_aligned(scores, D);
    float total[VECTOR] = {}, moment[VECTOR] = {};
    if (d < D) {
        float reference_d[VECTOR], beta_d[VECTOR], top[VECTOR], score[VECTOR], distance[VECTOR];
        int best_row[VECTOR];
        load_floats(reference, d, D, false, 0.f, reference_d);
        load_floats(beta, d, D, false, 0.f, beta_d);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            const Key key_d = d + i < D ? key[d + i] : 0;
            top[i] = value_of(key_d);
            best_row[i] = key_d ? (int)(0xffffffffu - (unsigned)key_d) : -1;
            if (blockIdx.y == 0 && threadIdx.y == 0 && d + i < D) tile_top[d + i] = top[i];
        }
        for (int k = start + threadIdx.y; k < end; k += 4) {
            load_floats(scores + (long long)k * D, d, D, aligned, MINUS_INFINITY, score);
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

// Join the chunks of a tile to the sums of all tiles before, whose maximum was top (D,).  One thread per frame.
extern "C" __global__ void join_tile(int D, int chunks, const Key *__restrict__ key,
                                     const float *__restrict__ totals, const float *__restrict__ moments,
                                     float *__restrict__ top, double *__restrict__ total,
                                     double *__restrict__ moment, long long *__restrict__ best_row)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D || key[d] == 0) return;
    const double shift = (double)top[d] - (double)value_of(key[d]);
    double sum = 0., weighted = 0.;
    if (total[d] > 0.) {
        const double factor = exp(shift);
        sum = factor * total[d];
        weighted = factor * (moment[d] + shift * total[d]);
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
        sum += totals[(long long)chunk * D + d];
        weighted += moments[(long long)chunk * D + d];
    }
    total[d] = sum;
    moment[d] = weighted;
    top[d] = value_of(key[d]);
    best_row[d] = 0xffffffffu - (unsigned)key[d];
}

// Distances of VECTOR frames, row after row.  Rows of a tile share their offsets, which are kept from row to row.
struct Distances {
    const Half *below;
    long long stride;
    const int *tile_of_row;
    const float *offset;
    int D, d, tile;
    float offset_d[VECTOR];

    __device__ __forceinline__ Distances(const Half *below_, long long stride_, const int *tile_of_row_,
                                         const float *offset_, int D_, int d_)
        : below(below_), stride(stride_), tile_of_row(tile_of_row_), offset(offset_), D(D_), d(d_), tile(-1)
    {
    }

    __device__ __forceinline__ void of_row(int k, float *distance)
    {
        const int own = tile_of_row[k];
        if (own < 0) {
#pragma unroll
            for (int i = 0; i < VECTOR; ++i) distance[i] = MINUS_INFINITY;
            return;
        }
        if (own != tile) {
            tile = own;
            load_floats(offset + (long long)tile * D, d, D, is_aligned(offset, D), 0.f, offset_d);
        }
        load_halves(below + k * stride + d, distance);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) distance[i] += offset_d[i];
    }
};

// Number of entries per bin of distance, counts (N_BINS + 1, D).  Block (32, 8); grid (frames / (32 VECTOR), rows / 1024).
extern "C" __global__ void count_distances(const Half *__restrict__ below, long long stride,
                                           const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                           int K, int D, int *__restrict__ counts)
{
    // A bank per thread of a warp, so that no two meet.  Two frames share a number: neither has more than 1024 rows.
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

// Sum of exp(distance) above the threshold per chunk of 256 rows, sums (chunks, D).  Block (64, 4).
extern "C" __global__ void kept_sums(const Half *__restrict__ below, long long stride,
                                     const int *__restrict__ tile_of_row, const float *__restrict__ offset,
                                     const float *__restrict__ lowest, int K, int D, double *__restrict__ sums)
{
    __shared__ float part[4][VECTOR][64];
    const int d = (blockIdx.x * 64 + threadIdx.x) * VECTOR, start = blockIdx.y * 256, end = min(start + 256, K);
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
                    ((double)part[0][i][threadIdx.x] + part[1][i][threadIdx.x]) +
                    ((double)part[2][i][threadIdx.x] + part[3][i][threadIdx.x]);
    }
}

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
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                if (d + i < D && distance[i] > lowest_d[i]) total[r] += factor_d[i] * exponential(distance[i]);
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

// out (T, D) = scores of a tile again, from what was kept of it.  Block 128 threads; grid (frames / (128 VECTOR), T).
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
