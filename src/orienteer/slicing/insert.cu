// Adds slices to sums at their positions in the cube: the GPU twin of _insert_numba.py.  See cell.cuh.
//
//   S[cell + (i, j, t)] += f_i f_j f_t (a_kp - w_kp W[k, p], w_kp)     w_kp = r_k c_p, or given in full
//
// W is the slice of a model; without a model, W = 0.
//
// coordinates (3, P) float32, in patches         order (P,) int32: the point at each place
// matrices (K, 3, 3) float32                     values, weights (K, P) or (P, K) float32
// sums, by FORM:
//   2   (n, n, n) float2 (value, weight)
//   8   (2, 2, n, h, h) of 2 float4: copy (y & 1, z & 1) holds the four voxels of a plane of a cell as one sector of
//       32 bytes, at (x, y >> 1, z >> 1)
//   64  (n, n, n, 2) int64 in units of 1 / scale: integers give the same sum in any order
//
// One thread per place of a point and ROWS rows; blockIdx.x runs over (group of rows) * tiles + tile of points.
// Most of the time goes into additions in the second-level cache, by sectors of 32 bytes: form 8 needs two a point.

#ifndef ROWS
#define ROWS 8
#endif
#ifndef FORM
#define FORM 8
#endif

#include "cell.cuh"

#if FORM == 8
typedef float4 Sum;
__device__ __forceinline__ void add_vector(float4 *at, float f, float4 v)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 ::"l"(at), "f"(f * v.x), "f"(f * v.y), "f"(f * v.z), "f"(f * v.w) : "memory");
#else
    atomicAdd(&at->x, f * v.x);
    atomicAdd(&at->y, f * v.y);
    atomicAdd(&at->z, f * v.z);
    atomicAdd(&at->w, f * v.w);
#endif
}
// Forms 2 and 64 add one row of the cell along z: (value, weight) of two neighbouring voxels.
#elif FORM == 2
typedef float2 Sum;
__device__ __forceinline__ void add_one(float2 *at, float a, float w)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(a), "f"(w) : "memory");
#else
    atomicAdd(&at->x, a);
    atomicAdd(&at->y, w);
#endif
}
__device__ __forceinline__ void add(float2 *sums, int n, int x, int y, int z, float f, float4 v, double, double)
{
    float2 *at = sums + (long long)(x * n + y) * n + z;
    add_one(at, f * v.x, f * v.y);
    add_one(at + 1, f * v.z, f * v.w);
}
#else
typedef unsigned long long Sum;
__device__ __forceinline__ void add_one(Sum *at, float f, float a, double scale)
{
    atomicAdd(at, (Sum)__double2ll_rn((double)f * (double)a * scale));  // two's complement: right for both signs
}
__device__ __forceinline__ void add(Sum *sums, int n, int x, int y, int z, float f, float4 v, double value_scale,
                                    double weight_scale)
{
    Sum *at = sums + 2 * ((long long)(x * n + y) * n + z);
    add_one(at, f, v.x, value_scale);
    add_one(at + 1, f, v.y, weight_scale);
    add_one(at + 2, f, v.z, value_scale);
    add_one(at + 3, f, v.w, weight_scale);
}
#endif

// Value and weight of row k at point p; the slice of a model, if any, times the weight is subtracted.
struct Deposited {
    float value, weight;
};

__device__ __forceinline__ Deposited deposited(const float *values, const float *weights, long long at,
                                               float row_weight, float pixel_weight, const Voxel *model, int n,
                                               const Cell &c)
{
    Deposited out = {values[at], weights ? weights[at] : row_weight * pixel_weight};
    if (model) out.value = fmaf(-out.weight, sample(model, n, c), out.value);
    return out;
}

#if FORM == 8
// Two neighbouring lanes add the two halves of the same sector: first for the point of the even lane, then of the odd.
__device__ __forceinline__ void add_sectors(float4 *sums, int n, bool used, const Cell &c, const Deposited &own)
{
    const int h = (n + 1) / 2, side = threadIdx.x & 1;
    const int copy = (c.y & 1) * 2 + (c.z & 1);
    const int sector = used ? ((copy * n + c.x) * h + (c.y >> 1)) * h + (c.z >> 1) : -1;
    const int its_sector = __shfl_xor_sync(~0u, sector, 1);
    const float its_fx = __shfl_xor_sync(~0u, c.fx, 1), its_fy = __shfl_xor_sync(~0u, c.fy, 1);
    const float its_fz = __shfl_xor_sync(~0u, c.fz, 1), its_value = __shfl_xor_sync(~0u, own.value, 1);
    const float its_weight = __shfl_xor_sync(~0u, own.weight, 1);
#pragma unroll
    for (int turn = 0; turn < 2; ++turn) {
        const bool mine = turn == side;
        const int place = mine ? sector : its_sector;
        if (place < 0) continue;
        const float fx = mine ? c.fx : its_fx, fy = mine ? c.fy : its_fy, fz = mine ? c.fz : its_fz;
        const float along_y = side ? fy : 1.f - fy;
        const float a = (mine ? own.value : its_value) * along_y, w = (mine ? own.weight : its_weight) * along_y;
        const float4 v = make_float4(a - fz * a, w - fz * w, fz * a, fz * w);
        float4 *at = sums + 2LL * place + side;
        add_vector(at, 1.f - fx, v);
        add_vector(at + 2LL * h * h, fx, v);
    }
}
#endif

extern "C" __global__ void insert_slices(Sum *sums, int n, const float *__restrict__ coordinates,
                                         const int *__restrict__ order, const float *__restrict__ matrices,
                                         const float *__restrict__ values, const float *__restrict__ row_weights,
                                         const float *__restrict__ pixel_weights, const float *__restrict__ weights,
                                         const Voxel *__restrict__ model, int K, int P, int tiles, int by_pixel,
                                         double value_scale, double weight_scale)
{
    const int number = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;
    const int first = (blockIdx.x / tiles) * ROWS;
    const bool there = number < P;
    if (FORM != 8 && !there) return;
    const int place = min(number, P - 1);  // a lane without a point still helps its neighbour
    const float qx = coordinates[place], qy = coordinates[P + place], qz = coordinates[2 * P + place];
    const long long p = order[place];
    const float pixel_weight = pixel_weights[p];
#pragma unroll 2
    for (int k = first; k < min(K, first + ROWS); ++k) {
        const float row_weight = row_weights[k];
        if (row_weight == 0.f) continue;
        const Cell c = cell_of(matrices + 9LL * k, qx, qy, qz, n);
        const long long at = by_pixel ? p * K + k : (long long)k * P + p;
#if FORM == 8
        const bool used = there && c.inside;
        Deposited own = {0.f, 0.f};
        if (used) own = deposited(values, weights, at, row_weight, pixel_weight, model, n, c);
        add_sectors(sums, n, used, c, own);
#else
        if (!c.inside) continue;
        const Deposited own = deposited(values, weights, at, row_weight, pixel_weight, model, n, c);
        const float a = own.value, w = own.weight;
        const float far_a = c.fz * a, far_w = c.fz * w;
        const float4 v = make_float4(a - far_a, w - far_w, far_a, far_w);
        const float gx = 1.f - c.fx, gy = 1.f - c.fy;
        add(sums, n, c.x, c.y, c.z, gx * gy, v, value_scale, weight_scale);
        add(sums, n, c.x, c.y + 1, c.z, gx * c.fy, v, value_scale, weight_scale);
        add(sums, n, c.x + 1, c.y, c.z, c.fx * gy, v, value_scale, weight_scale);
        add(sums, n, c.x + 1, c.y + 1, c.z, c.fx * c.fy, v, value_scale, weight_scale);
#endif
    }
}
