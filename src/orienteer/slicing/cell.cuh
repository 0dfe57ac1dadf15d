// Where a rotated point lies in a cube, and the sample of the cube there: shared by slicing and inserting.
//
//   x = M_k q_p                                         position in voxels from the centre voxel n / 2
//   W[k, p] = sum_ijt f_i f_j f_t V[cell + (i, j, t)]   f: trilinear weights
//
// A position outside the cube, or one with NaN, samples 0 and adds nothing.
//
// volume (n, n, n) float32, or QUADS: float4 of the neighbours (y, z), (y, z + 1), (y + 1, z), (y + 1, z + 1)

#ifndef QUADS
#define QUADS 0
#endif

struct Cell {
    int x, y, z;
    float fx, fy, fz;
    bool inside;
};

__device__ __forceinline__ float along(float x, float low, float high, int centre, int &cell, bool &inside)
{
    const bool here = x >= low && x <= high;  // false for NaN
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

__device__ __forceinline__ float sample(const Voxel *__restrict__ volume, int n, const Cell &c)
{
    const int at = (c.x * n + c.y) * n + c.z;
    return mix(sample_plane(volume, at, n, c), sample_plane(volume, at + n * n, n, c), c.fx);
}
