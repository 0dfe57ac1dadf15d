// Slices of a volume at many orientations, and slices added to sums: the GPU twin of _trilinear_numba.py.
//
//   x = M_k q_p                                         position in voxels from the centre voxel n / 2
//   W[k, p]          = sum_ijt f_i f_j f_t V[cell + (i, j, t)]              f: trilinear weights
//   S[cell + (i, j, t)] += f_i f_j f_t (a_kp, w_kp)                         w_kp = r_k c_p, or given in full
//
// A position outside the cube, or one that is not a number, samples 0 and adds nothing.
//
// coordinates (3, P) float32, in patches         order (P,) int32: the point at each place
// matrices (K, 3, 3) float32                     out, values, weights (K, P) or (P, K) float32
// volume (n, n, n) float32, or QUADS: float4 of the neighbours (y, z), (y, z + 1), (y + 1, z), (y + 1, z + 1)
// sums, by FORM:
//   2   (n, n, n) float2 (value, weight)
//   4   (2, n, n, h) float4: copy z & 1 holds the voxels z and z + 1 of a point as one vector, at z >> 1
//   64  (n, n, n, 2) int64 in units of 1 / scale: integers give the same sum in any order
//
// One thread per place of a point and ROWS rows; blockIdx.x runs over (group of rows) * tiles + tile of points.

#ifndef ROWS
#define ROWS 8
#endif
#ifndef QUADS
#define QUADS 0
#endif
#ifndef FORM
#define FORM 4
#endif

struct Cell {
    int x, y, z;
    float fx, fy, fz;
    bool inside;
};

__device__ __forceinline__ float along(float x, float low, float high, int centre, int &cell, bool &inside)
{
    const bool here = x >= low && x <= high;  // false for what is not a number
    inside = inside && here;
    x = here ? x : 0.f;
    const float below = fminf(floorf(x), high - 1.f);
    cell = (int)below + centre;
    return x - below;
}

__device__ __forceinline__ Cell cell_of(const float *__restrict__ M, float qx, float qy, float qz, int n)
{
    const int centre = n / 2;
    const float low = (float)-centre, high = (float)(n - 1 - centre);
    Cell c;
    c.inside = true;
    c.fx = along(fmaf(M[2], qz, fmaf(M[1], qy, M[0] * qx)), low, high, centre, c.x, c.inside);
    c.fy = along(fmaf(M[5], qz, fmaf(M[4], qy, M[3] * qx)), low, high, centre, c.y, c.inside);
    c.fz = along(fmaf(M[8], qz, fmaf(M[7], qy, M[6] * qx)), low, high, centre, c.z, c.inside);
    return c;
}

__device__ __forceinline__ float mix(float a, float b, float f) { return fmaf(f, b - a, a); }

#if QUADS
typedef float4 Voxel;
__device__ __forceinline__ float sample_plane(const float4 *__restrict__ volume, int at, int, const Cell &c)
{
    const float4 v = __ldg(volume + at);
    return mix(mix(v.x, v.y, c.fz), mix(v.z, v.w, c.fz), c.fy);
}
#else
typedef float Voxel;
__device__ __forceinline__ float sample_plane(const float *__restrict__ volume, int at, int n, const Cell &c)
{
    const float *low = volume + at, *high = low + n;
    return mix(mix(__ldg(low), __ldg(low + 1), c.fz), mix(__ldg(high), __ldg(high + 1), c.fz), c.fy);
}
#endif

extern "C" __global__ void make_quads(const float *__restrict__ volume, int n, float4 *__restrict__ quads)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n * n * n) return;
    const int right = at % n < n - 1 ? 1 : 0, down = at / n % n < n - 1 ? n : 0;
    quads[at] = make_float4(volume[at], volume[at + right], volume[at + down], volume[at + down + right]);
}

extern "C" __global__ void slice_volume(const Voxel *__restrict__ volume, int n, const float *__restrict__ coordinates,
                                        const int *__restrict__ order, const float *__restrict__ matrices, int K, int P,
                                        int tiles, int by_pixel, float *__restrict__ out)
{
    const int place = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;
    const int first = (blockIdx.x / tiles) * ROWS;
    if (place >= P) return;
    const float qx = coordinates[place], qy = coordinates[P + place], qz = coordinates[2 * P + place];
    const long long p = order[place];
    float samples[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        samples[r] = 0.f;
        if (first + r >= K) continue;
        const Cell c = cell_of(matrices + 9LL * (first + r), qx, qy, qz, n);
        if (c.inside) {
            const int at = (c.x * n + c.y) * n + c.z;
            samples[r] = mix(sample_plane(volume, at, n, c), sample_plane(volume, at + n * n, n, c), c.fx);
        }
    }
    const bool aligned = ROWS % 4 == 0 && K % 4 == 0 && (unsigned long long)out % 16 == 0;
    if (by_pixel && aligned && first + ROWS <= K) {  // whole sectors in few instructions
#pragma unroll
        for (int r = 0; r + 3 < ROWS; r += 4)
            *(float4 *)(out + p * K + first + r) =
                make_float4(samples[r], samples[r + 1], samples[r + 2], samples[r + 3]);
        return;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (first + r < K) out[by_pixel ? p * K + first + r : (long long)(first + r) * P + p] = samples[r];
}

// One row of the cell along z: (value, weight) of two neighbouring voxels.
#if FORM == 4
typedef float4 Sum;
__device__ __forceinline__ void add(float4 *sums, int n, int x, int y, int z, float f, float4 v, double, double)
{
    const int h = (n + 1) / 2;
    float4 *at = sums + ((long long)((z & 1) * n + x) * n + y) * h + (z >> 1);
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
    atomicAdd(at, (Sum)__double2ll_rn((double)f * (double)a * scale));  // two's complement: signs take care of themselves
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

extern "C" __global__ void insert_slices(Sum *sums, int n, const float *__restrict__ coordinates,
                                         const int *__restrict__ order, const float *__restrict__ matrices,
                                         const float *__restrict__ values, const float *__restrict__ row_weights,
                                         const float *__restrict__ pixel_weights, const float *__restrict__ weights,
                                         int K, int P, int tiles, int by_pixel, double value_scale, double weight_scale)
{
    const int place = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;
    const int first = (blockIdx.x / tiles) * ROWS;
    if (place >= P) return;
    const float qx = coordinates[place], qy = coordinates[P + place], qz = coordinates[2 * P + place];
    const long long p = order[place];
    const float pixel_weight = pixel_weights[p];
#pragma unroll 2
    for (int k = first; k < min(K, first + ROWS); ++k) {
        const float row_weight = row_weights[k];
        if (row_weight == 0.f) continue;
        const Cell c = cell_of(matrices + 9LL * k, qx, qy, qz, n);
        if (!c.inside) continue;
        const long long at = by_pixel ? p * K + k : (long long)k * P + p;
        const float a = values[at], w = weights ? weights[at] : row_weight * pixel_weight;
        const float far_a = c.fz * a, far_w = c.fz * w;
        const float4 v = make_float4(a - far_a, w - far_w, far_a, far_w);
        const float gx = 1.f - c.fx, gy = 1.f - c.fy;
        add(sums, n, c.x, c.y, c.z, gx * gy, v, value_scale, weight_scale);
        add(sums, n, c.x, c.y + 1, c.z, gx * c.fy, v, value_scale, weight_scale);
        add(sums, n, c.x + 1, c.y, c.z, c.fx * gy, v, value_scale, weight_scale);
        add(sums, n, c.x + 1, c.y + 1, c.z, c.fx * c.fy, v, value_scale, weight_scale);
    }
}
