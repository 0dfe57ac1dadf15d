// Photons drawn for (seed, shot, pixel): the GPU twin of _photons_numba.py.  Compile with -fmad=false.
//
// Philox 4x32-10 turns a counter (pixel, draw, event low, event high) and a key (two words of the seed) into four
// words.  Draw 0 serves four neighbouring pixels (counter pixel / 4), one word each; draws 1, 2, ... belong to one
// pixel and are made only if its first word does not decide.  Nothing depends on threads, batches or order.
//
// Only +, -, *, /, sqrt, frexp and ldexp decide a count, each rounded once and in the order of the CPU twin, so
// both count the same photons from the same means.
//
// expected (N, P) float32    event_id (N,) uint64    out (N, P) int32    bad (N,) int32
// draw_photons, draw_normal: one thread per four pixels of a frame.  count_lit, list_lit: one block per frame.

typedef unsigned int word;
typedef unsigned long long wide;
#define UNIT 2.3283064365386963e-10 /* 2^-32 */

__device__ __forceinline__ uint4 philox(word c0, word c1, word c2, word c3, word k0, word k1)
{
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const word high_0 = __umulhi(0xD2511F53u, c0), low_0 = 0xD2511F53u * c0;
        const word high_1 = __umulhi(0xCD9E8D57u, c2), low_1 = 0xCD9E8D57u * c2;
        c0 = high_1 ^ c1 ^ k0;
        c1 = low_1;
        c2 = high_0 ^ c3 ^ k1;
        c3 = low_0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

__device__ __forceinline__ double uniform_of(word coarse, word fine)
{
    return ((double)coarse + ((double)fine + 0.5) * UNIT) * UNIT;
}

__device__ double log_(double x)
{
    int exponent;
    double fraction = frexp(x, &exponent);
    if (fraction < 0.7071067811865476) {
        fraction *= 2.0;
        exponent -= 1;
    }
    const double s = (fraction - 1.0) / (fraction + 1.0);
    const double s2 = s * s;
    double series = 0.0;
    for (int odd = 21; odd > 0; odd -= 2) series = series * s2 + 1.0 / odd;
    return exponent * 0.6931471805599453 + 2.0 * s * series;
}

__device__ double exp_of_minus(double x)
{
    const double n = floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    double series = 1.0;
    for (int k = 14; k > 0; --k) series = 1.0 - series * r / k;
    return ldexp(series, -(int)n);
}

__device__ double log_factorial(double k)
{
    double x = k + 1.0, product = 1.0;
    while (x < 12.0) {
        product *= x;
        x += 1.0;
    }
    const double y = 1.0 / (x * x);
    const double series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
    return (x - 0.5) * log_(x) - x + 0.9189385332046727 + series - log_(product);
}

__device__ int invert_poisson(double mean, word first, word pixel, word e0, word e1, word k0, word k1)
{
    const double uniform = uniform_of(first, philox(pixel, 1u, e0, e1, k0, k1).x);
    const double none = exp_of_minus(mean);
    double tail = mean < 1e-3
                      ? mean * (1.0 - mean / 2.0 * (1.0 - mean / 3.0 * (1.0 - mean / 4.0 * (1.0 - mean / 5.0))))
                      : 1.0 - none;
    double probability = none;
    int photons = 0;
    while (uniform < tail && photons < 96) {
        photons += 1;
        probability *= mean / photons;
        tail -= probability;
    }
    return photons;
}

__device__ int reject_poisson(double mean, word pixel, word e0, word e1, word k0, word k1)
{
    const double b = 0.931 + 2.53 * sqrt(mean);
    const double a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double squeeze = 0.9277 - 3.6224 / (b - 2.0);
    const double log_mean = log_(mean);
    for (word draw = 1u;; ++draw) {
        const uint4 w = philox(pixel, draw, e0, e1, k0, k1);
        const double u = uniform_of(w.x, w.y) - 0.5, v = uniform_of(w.z, w.w);
        const double to_edge = 0.5 - fabs(u);
        if (to_edge <= 0.0) continue;
        const double k = floor((2.0 * a / to_edge + b) * u + mean + 0.43);
        if (to_edge >= 0.07 && v <= squeeze) return (int)k;
        if (k < 0.0 || k > 2147483647.0 || (to_edge < 0.013 && v > to_edge)) continue;
        const double accept = log_(v * inverse_alpha / (a / (to_edge * to_edge) + b));
        if (accept <= k * log_mean - mean - log_factorial(k)) return (int)k;
    }
}

extern "C" __global__ void draw_photons(const float *__restrict__ expected, const wide *__restrict__ event_id, word k0,
                                        word k1, int P, int tiles, int *__restrict__ out, int *__restrict__ bad)
{
    const long long d = blockIdx.x / tiles;
    const int group = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;
    const int first = 4 * group;
    if (first >= P) return;
    const wide event = event_id[d];
    const word e0 = (word)event, e1 = (word)(event >> 32);
    const uint4 block = philox((word)group, 0u, e0, e1, k0, k1);
    const word words[4] = {block.x, block.y, block.z, block.w};
    const long long row = d * P;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        const int p = first + s;
        if (p >= P) break;
        const double mean = expected[row + p];
        int photons = 0;
        // P(any photon) < mean, so a word of at least mean * 2^32 means no photon, without any function.
        if (0.0 <= mean && mean <= (double)words[s] * UNIT)
            photons = 0;
        else if (0.0 <= mean && mean < 10.0)
            photons = invert_poisson(mean, words[s], (word)p, e0, e1, k0, k1);
        else if (10.0 <= mean && mean <= 1e9)
            photons = reject_poisson(mean, (word)p, e0, e1, k0, k1);
        else
            bad[d] = 1;
        out[row + p] = photons;
    }
}

extern "C" __global__ void draw_normal(const wide *__restrict__ event_id, word stream, word k0, word k1, int P, int tiles,
                                       float *__restrict__ out)
{
    const long long d = blockIdx.x / tiles;
    const int group = (blockIdx.x % tiles) * blockDim.x + threadIdx.x;
    if (4 * group >= P) return;
    const wide event = event_id[d];
    const uint4 w = philox((word)group, stream, (word)event, (word)(event >> 32), k0, k1);
    const word pair[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const double radius = sqrt(-2.0 * log((pair[2 * half] + 0.5) * UNIT));
        const double angle = 6.283185307179586 * (pair[2 * half + 1] * UNIT);
        const int p = 4 * group + 2 * half;
        if (p < P) out[d * P + p] = (float)(radius * cos(angle));
        if (p + 1 < P) out[d * P + p + 1] = (float)(radius * sin(angle));
    }
}

extern "C" __global__ void count_lit(const int *__restrict__ counts, int P, long long *__restrict__ lit)
{
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const int *row = counts + (long long)blockIdx.x * P;
    int mine = 0;
    for (int p = threadIdx.x; p < P; p += blockDim.x) mine += row[p] != 0;
    atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0) lit[blockIdx.x] = total;
}

// Pixels must ascend in a frame: ballots rank the lit pixels of each stride, within a warp and across warps.
extern "C" __global__ void list_lit(const int *__restrict__ counts, int P, const long long *__restrict__ start,
                                    int *__restrict__ pixel, int *__restrict__ count)
{
    __shared__ int in_warp[32];
    const int *row = counts + (long long)blockIdx.x * P;
    long long entry = start[blockIdx.x];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int first = 0; first < P; first += blockDim.x) {
        const int p = first + threadIdx.x;
        const int photons = p < P ? row[p] : 0;
        const word ballot = __ballot_sync(0xFFFFFFFFu, photons != 0);
        if (lane == 0) in_warp[warp] = __popc(ballot);
        __syncthreads();
        int before = 0, all = 0;
        for (int other = 0; other < warps; ++other) {
            before += other < warp ? in_warp[other] : 0;
            all += in_warp[other];
        }
        if (photons != 0) {
            const long long mine = entry + before + __popc(ballot & ((1u << lane) - 1u));
            pixel[mine] = p;
            count[mine] = photons;
        }
        entry += all;
        __syncthreads();
    }
}
