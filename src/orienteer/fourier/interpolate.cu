// A function at any points from WIDTH^3 values of a corrected grid: the GPU twin of _interpolate_numba.py.
//
//   x = M_k q_p                        position in grid cells, float64 (1e-5 of a cell would show)
//   F(x) = sum_ijt  w_i(x) w_j(y) w_t(z)  G[ix + i, iy + j, iz + t]
//   w_t(f) = sum_d  c[d][t] (f - 1/2)^(DEGREE - d)
//
// grid   (m, m, row) complex64 as float2, row even, so that a cell with an even z index is 16-byte aligned
// points (1 or K, P, 3) float64    matrices (K, 3, 3) float64, 1/spacing folded in
// order  (P,) int32 or null: pixel of each thread.  Neighbours on the detector are neighbours in the grid, and a
//        warp that covers a patch instead of a line of pixels shares more cache lines.
// A point with |x|^2 > limit, or one that is not a number, gives NaN and reads nothing.
//
// WIDTH, DEGREE: constants of the compiler.  PAIRED: read two cells in one 16-byte load.
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

__device__ __forceinline__ float2 gather(const float2 *__restrict__ grid, int m, int row, const float (*c)[WIDTH],
                                         double x, double y, double z)
{
    const int ix = (int)x, iy = (int)y, iz = (int)z;
    float wx[WIDTH], wy[WIDTH], wz[WIDTH];
    taps(c, (float)(x - ix) - 0.5f, wx);
    taps(c, (float)(y - iy) - 0.5f, wy);
    taps(c, (float)(z - iz) - 0.5f, wz);
    const long long plane = (long long)m * row;
    const float2 *corner = grid + ix * plane + (long long)iy * row + iz;
    float real = 0.f, imag = 0.f;

#ifdef PAIRED
    // The first tap may be the second half of a 16-byte pair; then the pairs start one cell earlier.
    constexpr int PAIRS = WIDTH / 2 + 1;
    const int odd = iz & 1;
    float4 total[PAIRS];
#pragma unroll
    for (int t = 0; t < PAIRS; ++t) total[t] = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const float weight = wx[i] * wy[j];
            const float4 *pair = reinterpret_cast<const float4 *>(corner - odd + i * plane + j * row);
#pragma unroll
            for (int t = 0; t < PAIRS; ++t) {
                if (2 * t < WIDTH || odd || (WIDTH & 1)) {
                    const float4 g = __ldg(pair + t);
                    total[t].x = fmaf(weight, g.x, total[t].x);
                    total[t].y = fmaf(weight, g.y, total[t].y);
                    total[t].z = fmaf(weight, g.z, total[t].z);
                    total[t].w = fmaf(weight, g.w, total[t].w);
                }
            }
        }
    }
#pragma unroll
    for (int t = 0; t < PAIRS; ++t) {
        // Weight of cell 2 t and 2 t + 1 of the pairs: shifted by one tap when the first pair starts early.
        const float even_0 = 2 * t < WIDTH ? wz[2 * t < WIDTH ? 2 * t : 0] : 0.f;
        const float even_1 = 2 * t + 1 < WIDTH ? wz[2 * t + 1 < WIDTH ? 2 * t + 1 : 0] : 0.f;
        const float odd_0 = (t > 0 && 2 * t - 1 < WIDTH) ? wz[(t > 0 && 2 * t - 1 < WIDTH) ? 2 * t - 1 : 0] : 0.f;
        const float odd_1 = even_0;
        const float w0 = odd ? odd_0 : even_0, w1 = odd ? odd_1 : even_1;
        real = fmaf(w0, total[t].x, fmaf(w1, total[t].z, real));
        imag = fmaf(w0, total[t].y, fmaf(w1, total[t].w, imag));
    }
#else
    float2 total[WIDTH];
#pragma unroll
    for (int t = 0; t < WIDTH; ++t) total[t] = make_float2(0.f, 0.f);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            const float weight = wx[i] * wy[j];
            const float2 *cells = corner + i * plane + j * row;
#pragma unroll
            for (int t = 0; t < WIDTH; ++t) {
                const float2 g = __ldg(cells + t);
                total[t].x = fmaf(weight, g.x, total[t].x);
                total[t].y = fmaf(weight, g.y, total[t].y);
            }
        }
    }
#pragma unroll
    for (int t = 0; t < WIDTH; ++t) {
        real = fmaf(wz[t], total[t].x, real);
        imag = fmaf(wz[t], total[t].y, imag);
    }
#endif
    return make_float2(real, imag);
}

__device__ __forceinline__ bool rotate(const double *__restrict__ M, const double *__restrict__ q, double limit,
                                       double origin, double *x)
{
#pragma unroll
    for (int r = 0; r < 3; ++r) x[r] = M[3 * r] * q[0] + M[3 * r + 1] * q[1] + M[3 * r + 2] * q[2];
    const bool inside = x[0] * x[0] + x[1] * x[1] + x[2] * x[2] <= limit;
#pragma unroll
    for (int r = 0; r < 3; ++r) x[r] += origin;
    return inside;
}

#define SHARED_COEFFICIENTS                                                                                      \
    __shared__ float c[DEGREE + 1][WIDTH];                                                                       \
    for (int s = threadIdx.x; s < (DEGREE + 1) * WIDTH; s += blockDim.x) (&c[0][0])[s] = coefficients[s];        \
    __syncthreads();

extern "C" __global__ void field(const float2 *__restrict__ grid, int m, int row,
                                 const float *__restrict__ coefficients, const double *__restrict__ points,
                                 int points_per_k, const double *__restrict__ matrices, double origin,
                                 double limit, const int *__restrict__ order, int P, int tiles,
                                 float2 *__restrict__ out)
{
    SHARED_COEFFICIENTS
    const long long k = blockIdx.x / tiles;
    const int thread = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;
    if (thread >= P) return;
    const int p = order ? order[thread] : thread;
    double x[3];
    float2 value = make_float2(nanf(""), nanf(""));
    if (rotate(matrices + 9 * k, points + 3 * ((points_per_k ? k * P : 0) + p), limit, origin, x))
        value = gather(grid, m, row, c, x[0], x[1], x[2]);
    out[k * P + p] = value;
}

extern "C" __global__ void intensity(const float2 *__restrict__ grid, int m, int row,
                                     const float *__restrict__ coefficients, const double *__restrict__ points,
                                     int points_per_k, const double *__restrict__ matrices, double origin,
                                     double limit, const int *__restrict__ order, int P, int tiles,
                                     const float *__restrict__ scale, int scale_per_k,
                                     const float *__restrict__ weights, int add, float *__restrict__ out)
{
    SHARED_COEFFICIENTS
    const long long k = blockIdx.x / tiles;
    const int thread = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;
    if (thread >= P) return;
    const int p = order ? order[thread] : thread;
    double x[3];
    float value = nanf("");
    if (rotate(matrices + 9 * k, points + 3 * ((points_per_k ? k * P : 0) + p), limit, origin, x)) {
        const float2 F = gather(grid, m, row, c, x[0], x[1], x[2]);
        value = (F.x * F.x + F.y * F.y) * scale[(scale_per_k ? k * P : 0) + p] * weights[k];
    }
    out[k * P + p] = add ? out[k * P + p] + value : value;
}
