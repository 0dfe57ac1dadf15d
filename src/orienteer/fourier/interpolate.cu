// A function at any points from WIDTH^3 values of a corrected grid: the GPU twin of _interpolate_numba.py.
//
//   x = M_k q_p                        position in grid cells, float64 (an error of 1e-5 of a cell would show)
//   F(x) = sum_ijt  w_i(x) w_j(y) w_t(z)  G[ix + i, iy + j, iz + t]
//   w_t(f) = sum_d  c[d][t] (f - 1/2)^(DEGREE - d)
//
// grid   (m, m, m) complex64 as float2
// points (1 or K, P, 3) float64    matrices (K, 3, 3) float64, 1/spacing folded in
// order  (P,) int32 or null: pixel of each thread.  Neighbours on the detector are neighbours in the grid, and a
//        warp that covers a patch instead of a line of pixels shares more cache lines.
// A point with |x|^2 > limit, or one with NaN, gives NaN and reads nothing.
//
// WIDTH, DEGREE: compile-time constants.
// One thread per (k, p); blockIdx.x runs over k * tiles + tile.

#ifndef WIDTH
#define WIDTH 4
#define DEGREE 4
#endif

__device__ __forceinline__ void taps(const float (*c)[WIDTH], float f, float *w)
{
#pragma unroll
    for (int t = 0; t < WIDTH; ++t) {
        w[t] = c[0][t];
#pragma unroll
        for (int d = 1; d <= DEGREE; ++d) w[t] = fmaf(w[t], f, c[d][t]);
    }
}

__device__ __forceinline__ float2 gather(const float2 *__restrict__ grid, int m, const float (*c)[WIDTH], double x,
                                         double y, double z)
{
    const int ix = (int)x, iy = (int)y, iz = (int)z;
    float wx[WIDTH], wy[WIDTH], wz[WIDTH];
    taps(c, (float)(x - ix) - 0.5f, wx);
    taps(c, (float)(y - iy) - 0.5f, wy);
    taps(c, (float)(z - iz) - 0.5f, wz);
    const long long plane = (long long)m * m;
    const float2 *corner = grid + ix * plane + (long long)iy * m + iz;
    float2 total[WIDTH];
#pragma unroll
    for (int t = 0; t < WIDTH; ++t) total[t] = make_float2(0.f, 0.f);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const float weight = wx[i] * wy[j];
            const float2 *cells = corner + i * plane + j * m;
#pragma unroll
            for (int t = 0; t < WIDTH; ++t) {
                const float2 g = __ldg(cells + t);
                total[t].x = fmaf(weight, g.x, total[t].x);
                total[t].y = fmaf(weight, g.y, total[t].y);
            }
        }
    }
    float2 value = make_float2(0.f, 0.f);
#pragma unroll
    for (int t = 0; t < WIDTH; ++t) {
        value.x = fmaf(wz[t], total[t].x, value.x);
        value.y = fmaf(wz[t], total[t].y, value.y);
    }
    return value;
}

// Arguments of both kernels; k is the matrix of this block and p the pixel of this thread.
struct Samples {
    const float2 *grid;
    int m;
    const double *points;
    int points_per_k;
    const double *matrices;
    double origin, limit;
    int P;
};

__device__ __forceinline__ float2 value_at(const Samples &s, const float (*c)[WIDTH], long long k, int p)
{
    const double *q = s.points + 3 * ((s.points_per_k ? k * s.P : 0) + p), *M = s.matrices + 9 * k;
    double x[3];
#pragma unroll
    for (int r = 0; r < 3; ++r) x[r] = M[3 * r] * q[0] + M[3 * r + 1] * q[1] + M[3 * r + 2] * q[2];
    if (!(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] <= s.limit)) return make_float2(nanf(""), nanf(""));
    return gather(s.grid, s.m, c, x[0] + s.origin, x[1] + s.origin, x[2] + s.origin);
}

#define PROLOGUE                                                                                                 \
    __shared__ float c[DEGREE + 1][WIDTH];                                                                       \
    for (int e = threadIdx.x; e < (DEGREE + 1) * WIDTH; e += blockDim.x) (&c[0][0])[e] = coefficients[e];        \
    __syncthreads();                                                                                             \
    const long long k = blockIdx.x / tiles;                                                                      \
    const int thread = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;                                          \
    if (thread >= P) return;                                                                                     \
    const int p = order ? order[thread] : thread;                                                                \
    const Samples samples = {grid, m, points, points_per_k, matrices, origin, limit, P};

extern "C" __global__ void field(const float2 *__restrict__ grid, int m, const float *__restrict__ coefficients,
                                 const double *__restrict__ points, int points_per_k,
                                 const double *__restrict__ matrices, double origin, double limit,
                                 const int *__restrict__ order, int P, int tiles, float2 *__restrict__ out)
{
    PROLOGUE
    out[k * P + p] = value_at(samples, c, k, p);
}

extern "C" __global__ void intensity(const float2 *__restrict__ grid, int m, const float *__restrict__ coefficients,
                                     const double *__restrict__ points, int points_per_k,
                                     const double *__restrict__ matrices, double origin, double limit,
                                     const int *__restrict__ order, int P, int tiles,
                                     const float *__restrict__ scale, int scale_per_k,
                                     const float *__restrict__ weights, int add, float *__restrict__ out)
{
    PROLOGUE
    const float2 F = value_at(samples, c, k, p);
    const float value = (F.x * F.x + F.y * F.y) * scale[(scale_per_k ? k * P : 0) + p] * weights[k];
    out[k * P + p] = add ? out[k * P + p] + value : value;
}
