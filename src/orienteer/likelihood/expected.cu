// Operand and offsets of a tile of slices, and scores from their products: the GPU twin of _expected_numba.py.
//
//   s = max(c_p W_kp, floor_p)              signal of row k at pixel p, at unit fluence
//   l = fluence * s + b_p                   expected photons
//                        operand                        offset
//   Poisson              ln l - m_p                     l
//   negative binomial    ln l - ln(1 + e_p l) - m_p     ln(1 + e_p l) / e_p          (e_p = 1/r, 0 is Poisson)
//   Gaussian             fluence * s                    s^2                           (fluence: scale of the operand)
//
// slices  by row (T, P) or by pixel (P, T), float32; the first S = n_scored pixels are used
// operand (T, S) or (S, T): float32, or float16 high, or float16 high and low with operand = high + low / 2048,
//         or (offset_*) each pixel's own offset in float32; its rows begin at multiples of stride, so that they
//         are aligned for matrix products
// partial (parts, T) float64: offsets summed over the pixels of a part; the caller adds the parts, so the order of
//         summation is fixed.
//
// By row:   a block has 256 threads and takes 4 rows x 1024 pixels; a thread has 4 neighbouring pixels, keeps their
//           constants for 4 rows, and reads and writes them as one vector (rows of the operand begin at multiples of 8).
// By pixel: a thread is one row and walks over the PIXELS_PER_PART pixels of a part; constants are broadcasts.

#include "../compute/half.cuh"

enum { POISSON, NEGATIVE_BINOMIAL, GAUSSIAN };
enum { SINGLE, HALF, SPLIT, OFFSET };
enum { THREADS = 256, ROWS = 4, WIDTH = 4, PIXELS_PER_PART = 128 };

struct Pixel {
    float correction, floor, background, centre, dispersion;
};

// Constants of the pixels, arguments of every kernel; (S,) float32 each.
struct Pixels {
    const float *correction, *floor, *background, *centre, *dispersion;
};

template <int KIND> __device__ __forceinline__ Pixel load(const Pixels &all, int p)
{
    Pixel pixel = {__ldg(all.correction + p), __ldg(all.floor + p), 0.f, 0.f, 0.f};
    if (KIND != GAUSSIAN) {
        pixel.background = __ldg(all.background + p);
        pixel.centre = __ldg(all.centre + p);
    }
    if (KIND == NEGATIVE_BINOMIAL) pixel.dispersion = __ldg(all.dispersion + p);
    return pixel;
}

template <int KIND>
__device__ __forceinline__ void terms(float slice, const Pixel &pixel, float fluence, float &operand, float &offset)
{
    float signal = slice * pixel.correction;
    signal = signal > pixel.floor ? signal : pixel.floor;  // NaN also becomes the floor
    if (KIND == GAUSSIAN) {
        operand = signal * fluence;
        offset = signal * signal;
        return;
    }
    const float expected = fmaf(fluence, signal, pixel.background);
    operand = logf(expected) - pixel.centre;
    offset = expected;
    if (KIND == NEGATIVE_BINOMIAL) {
        const float y = fmaxf(expected * pixel.dispersion, 1e-30f);
        const float log_1p = log1pf(y);
        operand -= log_1p;
        offset = expected * (log_1p / y);
    }
}

// high and low are the two outputs; float32 goes to high, and low is not touched unless there are two terms.
template <int TERMS>
__device__ __forceinline__ void store(void *high, void *low, long long at, float operand, float offset)
{
    if (TERMS == SINGLE) static_cast<float *>(high)[at] = operand;
    if (TERMS == OFFSET) static_cast<float *>(high)[at] = offset;
    if (TERMS == HALF) static_cast<Half *>(high)[at] = to_half(operand);
    if (TERMS == SPLIT) {
        const Half first = to_half(operand);
        static_cast<Half *>(high)[at] = first;
        static_cast<Half *>(low)[at] = to_half((operand - from_half(first)) * 2048.f);
    }
}

__device__ __forceinline__ uint2 packed_halves(const float *x)
{
    return make_uint2(to_half(x[0]) | (unsigned)to_half(x[1]) << 16, to_half(x[2]) | (unsigned)to_half(x[3]) << 16);
}

// The same for WIDTH numbers from a multiple of WIDTH on.
template <int TERMS>
__device__ __forceinline__ void store_vector(void *high, void *low, long long at, const float *operand,
                                             const float *offset)
{
    if (TERMS == SINGLE || TERMS == OFFSET) {
        const float *x = TERMS == SINGLE ? operand : offset;
        static_cast<float4 *>(high)[at / WIDTH] = make_float4(x[0], x[1], x[2], x[3]);
        return;
    }
    static_cast<uint2 *>(high)[at / WIDTH] = packed_halves(operand);
    if (TERMS == SPLIT) {
        float rest[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) rest[i] = (operand[i] - from_half(to_half(operand[i]))) * 2048.f;
        static_cast<uint2 *>(low)[at / WIDTH] = packed_halves(rest);
    }
}

template <int KIND, int TERMS>
__device__ __forceinline__ void expand_rows(const float *slices, int P, int S, int T, int stride, const Pixels &all,
                                            float fluence, void *high, void *low, double *partial)
{
    const long long first_row = (long long)blockIdx.x * ROWS;
    const int p = (blockIdx.y * THREADS + threadIdx.x) * WIDTH;
    const bool aligned = P % WIDTH == 0 && (unsigned long long)slices % (4 * WIDTH) == 0;
    double total[ROWS] = {};
    if (p < S) {
        Pixel pixel[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) pixel[i] = load<KIND>(all, min(p + i, S - 1));
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const long long k = first_row + r;
            if (k >= T) break;
            const float *row = slices + k * P + p;
            float slice[WIDTH], operand[WIDTH], offset[WIDTH];
            if (aligned) {
                const float4 four = *reinterpret_cast<const float4 *>(row);
                slice[0] = four.x, slice[1] = four.y, slice[2] = four.z, slice[3] = four.w;
            } else {
#pragma unroll
                for (int i = 0; i < WIDTH; ++i) slice[i] = p + i < S ? row[i] : 0.f;
            }
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                terms<KIND>(slice[i], pixel[i], fluence, operand[i], offset[i]);
                if (p + i < S) total[r] += offset[i];
            }
            store_vector<TERMS>(high, low, k * stride + p, operand, offset);
        }
    }
    __shared__ double in_warp[ROWS][THREADS / 32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int step = 16; step > 0; step >>= 1) total[r] += __shfl_down_sync(0xFFFFFFFFu, total[r], step);
        if (lane == 0) in_warp[r][warp] = total[r];
    }
    __syncthreads();
    if (threadIdx.x < ROWS && first_row + threadIdx.x < T) {
        double sum = 0.0;
#pragma unroll
        for (int w = 0; w < THREADS / 32; ++w) sum += in_warp[threadIdx.x][w];
        partial[(long long)blockIdx.y * T + first_row + threadIdx.x] = sum;
    }
}

template <int KIND, int TERMS>
__device__ __forceinline__ void expand_pixels(const float *slices, int S, int T, int stride, const Pixels &all,
                                              float fluence, void *high, void *low, double *partial)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= T) return;
    const int first = blockIdx.y * PIXELS_PER_PART;
    const int last = min(S, first + PIXELS_PER_PART);
    double total = 0.0;
#pragma unroll 4
    for (int p = first; p < last; ++p) {
        const Pixel pixel = load<KIND>(all, p);
        float operand, offset;
        terms<KIND>(slices[(long long)p * T + k], pixel, fluence, operand, offset);
        store<TERMS>(high, low, (long long)p * stride + k, operand, offset);
        total += offset;
    }
    partial[(long long)blockIdx.y * T + k] = total;
}

#define KERNELS(KIND, kind, TERMS, form)                                                                         \
    extern "C" __global__ void __launch_bounds__(THREADS) form##_##kind##_rows(                                  \
        const float *__restrict__ slices, int P, int S, int T, int stride,                                       \
        const float *__restrict__ correction,                                                                    \
        const float *__restrict__ floor, const float *__restrict__ background, const float *__restrict__ centre, \
        const float *__restrict__ dispersion, float fluence, void *__restrict__ high, void *__restrict__ low,    \
        double *__restrict__ partial)                                                                            \
    {                                                                                                            \
        const Pixels all = {correction, floor, background, centre, dispersion};                                  \
        expand_rows<KIND, TERMS>(slices, P, S, T, stride, all, fluence, high, low, partial);                     \
    }                                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS) form##_##kind##_pixels(                                \
        const float *__restrict__ slices, int P, int S, int T, int stride,                                       \
        const float *__restrict__ correction,                                                                    \
        const float *__restrict__ floor, const float *__restrict__ background, const float *__restrict__ centre, \
        const float *__restrict__ dispersion, float fluence, void *__restrict__ high, void *__restrict__ low,    \
        double *__restrict__ partial)                                                                            \
    {                                                                                                            \
        const Pixels all = {correction, floor, background, centre, dispersion};                                  \
        expand_pixels<KIND, TERMS>(slices, S, T, stride, all, fluence, high, low, partial);                      \
    }
#define FORMS(KIND, kind)                 \
    KERNELS(KIND, kind, SINGLE, single)   \
    KERNELS(KIND, kind, HALF, half)       \
    KERNELS(KIND, kind, SPLIT, split)     \
    KERNELS(KIND, kind, OFFSET, offset)

FORMS(POISSON, poisson)
FORMS(NEGATIVE_BINOMIAL, negative_binomial)
FORMS(GAUSSIAN, gaussian)

// out[k, d] = product[k, d] - factor[d] * (offsets[k] - missing[k, d]) - slopes[k] * steps[d]; missing may be null.
// Blocks: x over frames, y over rows in strides of gridDim.y.  out may be product.
extern "C" __global__ void linear_scores(const float *product, const double *__restrict__ offsets,
                                         const double *__restrict__ factor, const double *__restrict__ slopes,
                                         const double *__restrict__ steps, const float *__restrict__ missing, int T,
                                         int D, float *out)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    const double f = factor[d], step = steps[d];
    for (int k = blockIdx.y; k < T; k += gridDim.y) {
        const long long at = (long long)k * D + d;
        const double offset = missing ? offsets[k] - missing[at] : offsets[k];
        out[at] = (float)(product[at] - f * offset - slopes[k] * step);
    }
}

// out[k, d] = -half_precision * (offsets[k] - missing[k, d] - product[k, d]^2 * inverse_squares[d]);
// 0 for every row of a frame with inverse_squares 0.
extern "C" __global__ void gaussian_scores(const float *product, const double *__restrict__ offsets,
                                           const double *__restrict__ inverse_squares,
                                           const float *__restrict__ missing, double half_precision, int T, int D,
                                           float *out)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    const double inverse = inverse_squares[d];
    for (int k = blockIdx.y; k < T; k += gridDim.y) {
        const long long at = (long long)k * D + d;
        const double projected = product[at];
        const double norm = missing ? offsets[k] - missing[at] : offsets[k];
        out[at] = inverse > 0.0 ? (float)(-half_precision * (norm - projected * projected * inverse)) : 0.f;
    }
}

// out[k, d] = responsibilities[k, d] * sqrt((offsets[k] + factor * scores[k, d]) * inverse_squares[d]).
extern "C" __global__ void gaussian_numerators(const float *__restrict__ scores, const double *__restrict__ offsets,
                                               const double *__restrict__ inverse_squares,
                                               const float *__restrict__ responsibilities, double factor, int T,
                                               int D, float *__restrict__ out)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    if (d >= D) return;
    const float inverse = (float)inverse_squares[d], slope = (float)factor;
    for (int k = blockIdx.y; k < T; k += gridDim.y) {
        const long long at = (long long)k * D + d;
        const float p = responsibilities[at];
        const float square = fmaxf(fmaf(slope, scores[at], (float)offsets[k]), 0.f);
        out[at] = p > 0.f ? p * sqrtf(square * inverse) : 0.f;
    }
}
