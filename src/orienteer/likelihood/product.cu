// Products of frames with tiles of rows: the GPU twin of _product_numba.py, and what matrix products need.
//
//   score   S[k, d] = sum over p of X[p, k] K[d, p]          X (P, T): rows k of a pixel side by side
//   merge   M[p, k] = sum over d of w[d, k] K[d, p]
//
// Lists: list n has the entries start[n] .. stop[n] of (index, count) int32; start and stop are int64.
// gather_rows      both products: lists by frame and X for the scores, lists by pixel and w (D, T) for the merge.
// listed_*         the same for listed pairs of a block of rows and a frame: block b is the rows block_start[b] ..
//                  block_start[b + 1], its pairs pair_start[b] .. pair_start[b + 1], and the value of its pair i and
//                  row r is values[value_start[b] + i * rows + r].  By lists (X (P, T), M (P, T)) or dense
//                  (X (T, P), M (T, P), counts (D, P) of COUNT_KIND 0: uint8, 1: uint16, 2: float16, 3: float32).
// split_halves     float32 into one or two float16 terms.
// Every number of a result is summed by one warp or thread in a fixed order: the same bits in every run.

#ifndef COUNT_KIND
#define COUNT_KIND 0
#endif

#include "../compute/half.cuh"

typedef long long wide;

#if COUNT_KIND == 0
typedef unsigned char count_type;
__device__ __forceinline__ float photons(count_type count) { return (float)count; }
#elif COUNT_KIND == 1
typedef unsigned short count_type;
__device__ __forceinline__ float photons(count_type count) { return (float)count; }
#elif COUNT_KIND == 2
typedef Half count_type;
__device__ __forceinline__ float photons(count_type count) { return from_half(count); }
#else
typedef float count_type;
__device__ __forceinline__ float photons(count_type count) { return count; }
#endif

__device__ __forceinline__ void add_scaled(float4 &sum, float count, float4 x)
{
    sum.x = fmaf(count, x.x, sum.x);
    sum.y = fmaf(count, x.y, sum.y);
    sum.z = fmaf(count, x.z, sum.z);
    sum.w = fmaf(count, x.w, sum.w);
}

__device__ __forceinline__ void add(float4 &sum, float4 x) { add_scaled(sum, 1.0f, x); }

__device__ __forceinline__ float4 other_lane(float4 x, int mask)
{
    return make_float4(__shfl_xor_sync(~0u, x.x, mask), __shfl_xor_sync(~0u, x.y, mask),
                       __shfl_xor_sync(~0u, x.z, mask), __shfl_xor_sync(~0u, x.w, mask));
}

// Eight warps, one list each, on a tile of 32 rows: eight lanes read the rows of one entry as float4, so a warp
// works on four entries at a time.  stride: columns of the table, a multiple of 4.  Neighbouring blocks share
// lists and not rows; the lists of a block share the table's lines in the first-level cache.
#define LISTS 8
#define LISTS_PER_BLOCK 64
#define TILE 32

extern "C" __global__ void __launch_bounds__(256)
gather_rows(const float *__restrict__ table, int stride, const wide *__restrict__ start,
            const wide *__restrict__ stop, const int *__restrict__ index, const int *__restrict__ count,
            int n_lists, int n_rows, int tiles, int by_list, float *__restrict__ out)
{
    __shared__ float sums[LISTS][TILE + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, part = lane / 8;
    const int tile = blockIdx.x % tiles;
    const wide first = (wide)(blockIdx.x / tiles) * LISTS_PER_BLOCK;
    int column = tile * TILE + lane % 8 * 4;
    if (column >= stride) column = 0;  // beyond the last row: read any column, write none
    const float *rows = table + column;

    for (int begin = 0; begin < LISTS_PER_BLOCK && first + begin < n_lists; begin += LISTS) {
        const wide list = first + begin + warp;
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (list < n_lists) {
            const wide last = stop[list];
            wide e = start[list] + part;
            for (; e + 12 < last; e += 16) {
                float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    add_scaled(sum, (float)count[e + 4 * i],
                               *(const float4 *)(rows + (wide)index[e + 4 * i] * stride));
                add(total, sum);
            }
            for (; e < last; e += 4)
                add_scaled(total, (float)count[e], *(const float4 *)(rows + (wide)index[e] * stride));
        }
        add(total, other_lane(total, 8));
        add(total, other_lane(total, 16));
        if (part == 0) {
            float *row = sums[warp] + lane * 4;
            row[0] = total.x;
            row[1] = total.y;
            row[2] = total.z;
            row[3] = total.w;
        }
        __syncthreads();
        const int i = by_list ? threadIdx.x / TILE : threadIdx.x % LISTS;
        const int t = by_list ? threadIdx.x % TILE : threadIdx.x / LISTS;
        const wide n = first + begin + i, k = tile * TILE + t;
        if (n < n_lists && k < n_rows) out[by_list ? n * n_rows + k : k * n_lists + n] = sums[i][t];
        __syncthreads();
    }
}

// Number of lanes side by side on the rows of a block: the smallest of 8, 16, 32 that covers them, at most 32.
__device__ __forceinline__ int lanes_for(int n_rows) { return n_rows <= 8 ? 8 : n_rows <= 16 ? 16 : 32; }

// One warp per pair.
extern "C" __global__ void __launch_bounds__(256)
listed_scores(const float *__restrict__ table, int stride, const wide *__restrict__ block_start,
              const wide *__restrict__ pair_start, const wide *__restrict__ value_start,
              const wide *__restrict__ pair_block, const wide *__restrict__ frame,
              const wide *__restrict__ start, const wide *__restrict__ stop, const int *__restrict__ index,
              const int *__restrict__ count, wide n_pairs, float *__restrict__ values)
{
    const wide pair = (wide)blockIdx.x * 8 + threadIdx.x / 32;
    if (pair >= n_pairs) return;
    const int lane = threadIdx.x % 32;
    const wide b = pair_block[pair], d = frame[pair];
    const int n_rows = (int)(block_start[b + 1] - block_start[b]);
    const int lanes = lanes_for(n_rows), parts = 32 / lanes, part = lane / lanes;
    float *out = values + value_start[b] + (pair - pair_start[b]) * n_rows;
    for (int r = lane % lanes; r - lane % lanes < n_rows; r += lanes) {
        const float *rows = table + block_start[b] + min(r, n_rows - 1);
        const wide last = stop[d];
        wide e = start[d] + part;
        float total = 0.0f;
        for (; e + 3 * parts < last; e += 4 * parts) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                sum = fmaf((float)count[e + i * parts], rows[(wide)index[e + i * parts] * stride], sum);
            total += sum;
        }
        for (; e < last; e += parts) total = fmaf((float)count[e], rows[(wide)index[e] * stride], total);
        for (int mask = lanes; mask < 32; mask *= 2) total += __shfl_xor_sync(~0u, total, mask);
        if (part == 0 && r < n_rows) out[r] = total;
    }
}

// One thread block per block of rows; no other writes its columns of out (P, stride).  The entries of one frame
// have different pixels, so they may be added in any order; frames are added one after another.
extern "C" __global__ void __launch_bounds__(256)
listed_merge(const float *__restrict__ values, const wide *__restrict__ block_start,
             const wide *__restrict__ pair_start, const wide *__restrict__ value_start,
             const wide *__restrict__ frame, const wide *__restrict__ start, const int *__restrict__ index,
             const int *__restrict__ count, int stride, float *out)
{
    const wide b = blockIdx.x;
    const int n_rows = (int)(block_start[b + 1] - block_start[b]);
    const int lanes = lanes_for(n_rows), parts = blockDim.x / lanes;
    float *columns = out + block_start[b];
    for (wide pair = pair_start[b]; pair < pair_start[b + 1]; ++pair) {
        const wide d = frame[pair], last = start[d + 1];
        const float *value = values + value_start[b] + (pair - pair_start[b]) * n_rows;
        for (int r = threadIdx.x % lanes; r < n_rows; r += lanes) {
            const float weight = value[r];
            for (wide e = start[d] + threadIdx.x / lanes; e < last; e += 4 * parts) {
                float sum[4];
                float *place[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const wide at = min(e + i * parts, last - 1);
                    place[i] = columns + (wide)index[at] * stride + r;
                    sum[i] = fmaf((float)count[at], weight, *place[i]);
                }
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    if (e + i * parts < last) *place[i] = sum[i];
            }
        }
        __syncthreads();
    }
}

// A warp takes PAIRS pairs of a block and PANEL of its rows at a time; each lane sums every 32nd pixel.
#define PAIRS 4
#define PANEL 8

extern "C" __global__ void __launch_bounds__(256)
dense_listed_scores(const count_type *__restrict__ counts, wide frame_stride, const float *__restrict__ table,
                    wide stride, int n_pixels, const wide *__restrict__ block_start,
                    const wide *__restrict__ pair_start, const wide *__restrict__ value_start,
                    const wide *__restrict__ frame, int slices, float *__restrict__ values)
{
    const wide b = blockIdx.x / slices;
    const int n_rows = (int)(block_start[b + 1] - block_start[b]), lane = threadIdx.x % 32;
    const wide last_pair = pair_start[b + 1];
    wide pair = pair_start[b] + ((wide)(blockIdx.x % slices) * 8 + threadIdx.x / 32) * PAIRS;
    for (; pair < last_pair; pair += (wide)slices * 8 * PAIRS) {
        const count_type *picture[PAIRS];
#pragma unroll
        for (int i = 0; i < PAIRS; ++i) picture[i] = counts + frame[min(pair + i, last_pair - 1)] * frame_stride;
        for (int first = 0; first < n_rows; first += PANEL) {
            const float *row[PANEL];
            float total[PAIRS][PANEL];
#pragma unroll
            for (int r = 0; r < PANEL; ++r) {
                row[r] = table + (block_start[b] + min(first + r, n_rows - 1)) * stride;
#pragma unroll
                for (int i = 0; i < PAIRS; ++i) total[i][r] = 0.0f;
            }
            for (int p = lane; p < n_pixels; p += 32) {
                float k[PAIRS];
#pragma unroll
                for (int i = 0; i < PAIRS; ++i) k[i] = photons(picture[i][p]);
#pragma unroll
                for (int r = 0; r < PANEL; ++r) {
                    const float x = row[r][p];
#pragma unroll
                    for (int i = 0; i < PAIRS; ++i) total[i][r] = fmaf(k[i], x, total[i][r]);
                }
            }
#pragma unroll
            for (int i = 0; i < PAIRS; ++i) {
                float *out = values + value_start[b] + (pair + i - pair_start[b]) * n_rows + first;
#pragma unroll
                for (int r = 0; r < PANEL; ++r) {
                    float sum = total[i][r];
                    for (int mask = 1; mask < 32; mask *= 2) sum += __shfl_xor_sync(~0u, sum, mask);
                    if (lane == 0 && pair + i < last_pair && first + r < n_rows) out[r] = sum;
                }
            }
        }
    }
}

// One thread per pixel of a block's rows: out (T, P), zero before.
extern "C" __global__ void __launch_bounds__(256)
dense_listed_merge(const count_type *__restrict__ counts, wide frame_stride, const float *__restrict__ values,
                   const wide *__restrict__ block_start, const wide *__restrict__ pair_start,
                   const wide *__restrict__ value_start, const wide *__restrict__ frame, int n_pixels, int tiles,
                   float *__restrict__ out)
{
    const wide b = blockIdx.x / tiles;
    const int p = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    const int n_rows = (int)(block_start[b + 1] - block_start[b]);
    if (p >= n_pixels) return;
    for (int first = 0; first < n_rows; first += PANEL) {
        float total[PANEL];
#pragma unroll
        for (int r = 0; r < PANEL; ++r) total[r] = 0.0f;
        for (wide pair = pair_start[b]; pair < pair_start[b + 1]; ++pair) {
            const float k = photons(counts[frame[pair] * frame_stride + p]);
            const float *value = values + value_start[b] + (pair - pair_start[b]) * n_rows;
#pragma unroll
            for (int r = 0; r < PANEL; ++r) total[r] = fmaf(k, value[min(first + r, n_rows - 1)], total[r]);
        }
#pragma unroll
        for (int r = 0; r < PANEL; ++r)
            if (first + r < n_rows) out[(block_start[b] + first + r) * n_pixels + p] = total[r];
    }
}

// Eight float16 numbers as one vector.
__device__ __forceinline__ uint4 packed(const Half *x)
{
    return make_uint4(x[0] | (unsigned)x[1] << 16, x[2] | (unsigned)x[3] << 16, x[4] | (unsigned)x[5] << 16,
                      x[6] | (unsigned)x[7] << 16);
}

// x (N, M) times scale into high + low / 2048, both (N, stride) float16, zero beyond M; low may be null.
// stride is a multiple of 8, and a thread has 8 columns of a row at a time: n_vectors = N stride / 8.
extern "C" __global__ void split_halves(const float *__restrict__ x, wide n_vectors, int n_columns, int stride,
                                        float scale, Half *__restrict__ high, Half *__restrict__ low)
{
    const int in_row = stride / 8;
    const bool aligned = n_columns % 4 == 0 && (unsigned long long)x % 16 == 0;
    for (wide v = (wide)blockIdx.x * blockDim.x + threadIdx.x; v < n_vectors; v += (wide)gridDim.x * blockDim.x) {
        const wide n = v / in_row;
        const int m = (int)(v - n * in_row) * 8;
        const float *row = x + n * n_columns + m;
        float value[8];
        if (aligned && m + 8 <= n_columns) {
            const float4 a = reinterpret_cast<const float4 *>(row)[0], b = reinterpret_cast<const float4 *>(row)[1];
            value[0] = a.x, value[1] = a.y, value[2] = a.z, value[3] = a.w;
            value[4] = b.x, value[5] = b.y, value[6] = b.z, value[7] = b.w;
        } else {
#pragma unroll
            for (int i = 0; i < 8; ++i) value[i] = m + i < n_columns ? row[i] : 0.0f;
        }
        Half first[8], rest[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            value[i] *= scale;
            first[i] = to_half(value[i]);
            rest[i] = to_half((value[i] - from_half(first[i])) * 2048.0f);
        }
        reinterpret_cast<uint4 *>(high)[v] = packed(first);
        if (low) reinterpret_cast<uint4 *>(low)[v] = packed(rest);
    }
}
