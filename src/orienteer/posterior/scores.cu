// Tempered scores kept as distances below a maximum, and probabilities from them: GPU twin of _scores_numba.py.
//
//   x_kd = beta_d (S_kd - reference_d) + log_prior_k            float32
//   below_kd = x_kd - top_d at the time of its tile             float16, <= 0
//   distance_kd = below_kd + offset_td,  offset_td = top_d then - top_d in the end,  t the tile of row k
//   p_kd = factor_d exp(distance_kd) where distance_kd > lowest_d, else 0
//
// scores (T, D) float32    below (K, D) float16    tile_of_row (K,) int32, -1: never added    offset (tiles, D)
// Frames lie along x, so that neighbouring threads read neighbouring numbers; rows are cut into chunks.
// Sums over rows go chunk by chunk into arrays that are added in their order; counts and maxima are whole
// numbers: every result is the same in each run.

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

// key (D,) of the best before a tile; 0 where there is none.  One thread per frame.
extern "C" __global__ void begin_key(int D, const float *__restrict__ top, const double *__restrict__ total,
                                     const long long *__restrict__ best_row, Key *__restrict__ key)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d < D) key[d] = total[d] > 0. ? key_of(top[d], (int)best_row[d]) : 0;
}

// Raise key (D,) to the best of a tile.  Block (64, 4) threads; grid (frames / 64, rows / 64).
extern "C" __global__ void raise_top(const float *__restrict__ scores, int T, int D, int first_row,
                                     const float *__restrict__ reference, const float *__restrict__ log_prior,
                                     const float *__restrict__ beta, Key *__restrict__ key)
{
    __shared__ Key best[4][64];
    const int d = blockIdx.x * 64 + threadIdx.x, start = blockIdx.y * 64, end = min(start + 64, T);
    Key own = 0;
    if (d < D) {
        const float reference_d = reference[d], beta_d = beta[d];
        for (int k = start + threadIdx.y; k < end; k += 4) {
            const float x = tempered(scores[(long long)k * D + d], reference_d, beta_d, log_prior[k]);
            if (x > NOTHING) own = max(own, key_of(x, first_row + k));  // neither -inf nor what is not a number
        }
    }
    best[threadIdx.y][threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.y == 0 && d < D) {
        for (int y = 1; y < 4; ++y) own = max(own, best[y][threadIdx.x]);
        if (own) atomicMax(key + d, own);
    }
}

// Keep a tile and sum e^below and below e^below per chunk of 64 rows: totals, moments (chunks, D).
// tile_top (D,) gets the maximum that ``below`` is measured from.  Block and grid as above.
extern "C" __global__ void store_tile(const float *__restrict__ scores, int T, int D, int first_row,
                                      const float *__restrict__ reference, const float *__restrict__ log_prior,
                                      const float *__restrict__ beta, const Key *__restrict__ key,
                                      Half *__restrict__ below, float *__restrict__ tile_top,
                                      float *__restrict__ best_score, float *__restrict__ totals,
                                      float *__restrict__ moments)
{
    __shared__ float part_total[4][64], part_moment[4][64];
    const int d = blockIdx.x * 64 + threadIdx.x, start = blockIdx.y * 64, end = min(start + 64, T);
    float total = 0.f, moment = 0.f;
    if (d < D) {
        const float reference_d = reference[d], beta_d = beta[d], top = value_of(key[d]);
        const int best_row = key[d] ? (int)(0xffffffffu - (unsigned)key[d]) : -1;
        if (blockIdx.y == 0 && threadIdx.y == 0) tile_top[d] = top;
        for (int k = start + threadIdx.y; k < end; k += 4) {
            const float score = scores[(long long)k * D + d];
            float distance = tempered(score, reference_d, beta_d, log_prior[k]) - top;
            if (!(distance > NOTHING)) distance = MINUS_INFINITY;
            below[(long long)(first_row + k) * D + d] = to_half(distance);
            if (first_row + k == best_row) best_score[d] = score;
            const float p = expf(distance);
            total += p;
            if (p > 0.f) moment = fmaf(p, distance, moment);
        }
    }
    part_total[threadIdx.y][threadIdx.x] = total;
    part_moment[threadIdx.y][threadIdx.x] = moment;
    __syncthreads();
    if (threadIdx.y == 0 && d < D) {
        for (int y = 1; y < 4; ++y) {
            total += part_total[y][threadIdx.x];
            moment += part_moment[y][threadIdx.x];
        }
        totals[(long long)blockIdx.y * D + d] = total;
        moments[(long long)blockIdx.y * D + d] = moment;
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

__device__ __forceinline__ float distance_at(const Half *below, const int *tile_of_row, const float *offset, int k,
                                             int D, int d)
{
    const int tile = tile_of_row[k];
    return tile < 0 ? MINUS_INFINITY
                    : from_half(below[(long long)k * D + d]) + offset[(long long)tile * D + d];
}

// Number of entries per bin of distance, counts (N_BINS + 1, D).  Block (32, 8); grid (frames / 32, rows / 1024).
extern "C" __global__ void count_distances(const Half *__restrict__ below, const int *__restrict__ tile_of_row,
                                           const float *__restrict__ offset, int K, int D, int *__restrict__ counts)
{
    __shared__ int own[N_BINS + 1][32];  // a bank per frame: no two threads of a warp meet
    for (int bin = threadIdx.y; bin <= N_BINS; bin += 8) own[bin][threadIdx.x] = 0;
    __syncthreads();
    const int d = blockIdx.x * 32 + threadIdx.x, start = blockIdx.y * 1024, end = min(start + 1024, K);
    if (d < D) {
        for (int k = start + threadIdx.y; k < end; k += 8) {
            const float distance = distance_at(below, tile_of_row, offset, k, D, d);
            if (distance > MINUS_INFINITY) {
                const float place = -distance * BINS_PER_NAT;
                atomicAdd(&own[place < (float)N_BINS ? (int)place : N_BINS][threadIdx.x], 1);
            }
        }
    }
    __syncthreads();
    if (d < D)
        for (int bin = threadIdx.y; bin <= N_BINS; bin += 8)
            if (own[bin][threadIdx.x]) atomicAdd(counts + (long long)bin * D + d, own[bin][threadIdx.x]);
}

// Sum of exp(distance) above the threshold per chunk of 256 rows, sums (chunks, D).  Block (64, 4).
extern "C" __global__ void kept_sums(const Half *__restrict__ below, const int *__restrict__ tile_of_row,
                                     const float *__restrict__ offset, const float *__restrict__ lowest, int K, int D,
                                     double *__restrict__ sums)
{
    __shared__ float part[4][64];
    const int d = blockIdx.x * 64 + threadIdx.x, start = blockIdx.y * 256, end = min(start + 256, K);
    float total = 0.f;
    if (d < D) {
        const float lowest_d = lowest[d];
        for (int k = start + threadIdx.y; k < end; k += 4) {
            const float distance = distance_at(below, tile_of_row, offset, k, D, d);
            if (distance > lowest_d) total += expf(distance);
        }
    }
    part[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y == 0 && d < D)
        sums[(long long)blockIdx.y * D + d] = ((double)part[0][threadIdx.x] + part[1][threadIdx.x]) +
                                              ((double)part[2][threadIdx.x] + part[3][threadIdx.x]);
}

// out (T, D) = probabilities of rows first .. first + T.  Block 256 frames; grid (frames / 256, T up to 65535 ...).
extern "C" __global__ void responsibilities(const Half *__restrict__ below, const int *__restrict__ tile_of_row,
                                            const float *__restrict__ offset, const float *__restrict__ lowest,
                                            const float *__restrict__ factor, int first, int T, int D,
                                            float *__restrict__ out)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    const float lowest_d = lowest[d], factor_d = factor[d];
    for (int k = blockIdx.y; k < T; k += gridDim.y) {
        const float distance = distance_at(below, tile_of_row, offset, first + k, D, d);
        out[(long long)k * D + d] = distance > lowest_d ? factor_d * expf(distance) : 0.f;
    }
}

// out (K,) = sum over frames of the probabilities of each row.  One block of 256 threads per row.
extern "C" __global__ void row_mass(const Half *__restrict__ below, const int *__restrict__ tile_of_row,
                                    const float *__restrict__ offset, const float *__restrict__ lowest,
                                    const float *__restrict__ factor, int D, double *__restrict__ out)
{
    __shared__ double part[256];
    double total = 0.;
    for (int d = threadIdx.x; d < D; d += 256) {
        const float distance = distance_at(below, tile_of_row, offset, blockIdx.x, D, d);
        if (distance > lowest[d]) total += factor[d] * expf(distance);
    }
    part[threadIdx.x] = total;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

// Number of kept entries per chunk of 256 rows, counts (chunks, D).  One thread per frame and chunk.
extern "C" __global__ void count_kept(const Half *__restrict__ below, const int *__restrict__ tile_of_row,
                                      const float *__restrict__ offset, const float *__restrict__ lowest, int K, int D,
                                      long long *__restrict__ counts)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x, end = min((int)blockIdx.y * 256 + 256, K);
    if (d >= D) return;
    const float lowest_d = lowest[d];
    int count = 0;
    for (int k = blockIdx.y * 256; k < end; ++k)
        count += distance_at(below, tile_of_row, offset, k, D, d) > lowest_d;
    counts[(long long)blockIdx.y * D + d] = count;
}

// List the kept entries of each chunk from place (chunks, D) on: rows ascending within a frame.
extern "C" __global__ void list_kept(const Half *__restrict__ below, const int *__restrict__ tile_of_row,
                                     const float *__restrict__ offset, const float *__restrict__ lowest,
                                     const float *__restrict__ factor, int K, int D,
                                     const long long *__restrict__ place, int *__restrict__ row,
                                     float *__restrict__ probability)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x, end = min((int)blockIdx.y * 256 + 256, K);
    if (d >= D) return;
    const float lowest_d = lowest[d], factor_d = factor[d];
    long long next = place[(long long)blockIdx.y * D + d];
    for (int k = blockIdx.y * 256; k < end; ++k) {
        const float distance = distance_at(below, tile_of_row, offset, k, D, d);
        if (distance > lowest_d) {
            row[next] = k;
            probability[next] = factor_d * expf(distance);
            ++next;
        }
    }
}

// out (T, D) = scores of a tile again, from what was kept of it.  Block 256 frames; grid (frames / 256, T).
extern "C" __global__ void untempered(const Half *__restrict__ below, const float *__restrict__ top,
                                      const float *__restrict__ log_prior, const float *__restrict__ beta,
                                      const float *__restrict__ reference, int T, int D, float *__restrict__ out)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    const float top_d = top[d], inverse = 1.f / fmaxf(beta[d], 1e-30f), reference_d = reference[d];
    for (int k = blockIdx.y; k < T; k += gridDim.y) {
        const long long at = (long long)k * D + d;
        out[at] = fmaf(from_half(below[at]) + top_d - log_prior[k], inverse, reference_d);
    }
}
