// Slices W[k, p] of a volume at many orientations: the GPU twin of _trilinear_numba.py.  See cell.cuh.
//
// coordinates (3, P) float32, in patches         order (P,) int32: the point at each place
// matrices (K, 3, 3) float32                     out (K, P) or (P, K) float32
//
// One thread per place of a point and ROWS rows; blockIdx.x runs over (group of rows) * tiles + tile of points.

#ifndef ROWS
#define ROWS 8
#endif

#include "cell.cuh"

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
        if (c.inside) samples[r] = sample(volume, n, c);
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
