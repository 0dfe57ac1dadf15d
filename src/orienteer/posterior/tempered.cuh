// Tempered scores stored as distances below a maximum: shared by scores.cu, probabilities.cu and weighing.cu.
//
//   x_kd = beta_d (S_kd - reference_d) + log_prior_k            float32
//   below_kd = x_kd - top_td of its tile                        float16, <= 0
//   distance_kd = below_kd + offset_td,  offset_td = top_td - top_d of all tiles,  t the tile of row k
//   p_kd = factor_d exp(distance_kd) where distance_kd > lowest_d, else 0
//
// scores (T, D) float32    below (K, D) float16    tile_of_row (K,) int32, -1: never added    offset (tiles, D)
// Rows of ``below`` begin at multiples of stride, itself a multiple of 8.
// Frames lie along x, so that neighbouring threads read neighbouring numbers; rows are cut into chunks.  A thread has
// VECTOR neighbouring frames, which it reads and writes as one vector where rows begin at multiples of it.
// Sums go part by part into arrays that are added in their order; counts and maxima are whole numbers: every
// result is the same in each run.

#ifndef VECTOR
#define VECTOR 4
#endif

#include "../compute/half.cuh"

#define MINUS_INFINITY __int_as_float(0xff800000)

// Relative error 1e-5 where the result is a normal number, down to x = -87; below, it may be taken as 0.
__device__ __forceinline__ float exponential(float x) { return __expf(x); }

// Load VECTOR numbers, the first at a multiple of VECTOR.
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

// Numbers beyond the last frame go into the padding at the end of the row, which is never read.
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
