// Converts read-out to photons: the GPU twin of _conversion_numba.py.
//
//   x = (raw - pedestal - offset of the panel) / gain
//   out = whole part of (x + lift), clipped to 0 ... 65535, or x itself
//   offset = median of the main peak, a photon wide, of the signals of a panel within 2 photons of 0
//            (only values of the first gain stage have an offset)
//
// raw                     (D, P) of one of four types
// stage                   (D, P) uint8, or null: the first stage everywhere
// pedestal, inverse_gain  (S, P) float32
// order, first            pixels of panel l: order[first[l] .. first[l+1])
// panel                   (P,) int32, -1 for none;  offset (D, L) float32 in ADU;  photon (L,) float32, ADU of one
//
// convert uses one thread for each value; find_offsets uses one block for each panel of each frame, with the
// histogram in shared memory.

const int N_BINS = 64;  // each a sixteenth of a photon wide

template <typename T>
__device__ void convert(const T *__restrict__ raw, const unsigned char *__restrict__ stage,
                        const float *__restrict__ pedestal, const float *__restrict__ inverse_gain,
                        const int *__restrict__ panel, const float *__restrict__ offset, int S, int L, long long D,
                        int P, float lift, unsigned short *__restrict__ counts, float *__restrict__ signal)
{
    for (long long e = (long long)blockIdx.x * blockDim.x + threadIdx.x; e < D * P;
         e += (long long)gridDim.x * blockDim.x) {
        const long long d = e / P;
        const int p = (int)(e % P);
        const long long s = stage ? min((int)stage[e], S - 1) : 0;
        float x = (float)raw[e] - pedestal[s * P + p];
        if (s == 0 && panel[p] >= 0) x -= offset[d * L + panel[p]];
        x *= inverse_gain[s * P + p];
        if (counts) {
            x += lift;
            x = x > 0.0f ? x : 0.0f;  // NaN becomes 0
            counts[e] = (unsigned short)(x < 65535.0f ? x : 65535.0f);
        } else {
            signal[e] = x;
        }
    }
}

__device__ float middle_of_fullest(const int *bins)
{
    int inside = 0;
    for (int b = 0; b < 8; ++b) inside += bins[b];
    int most = inside, best = 0;
    for (int b = 1; b < N_BINS - 7; ++b) {
        inside += bins[b + 7] - bins[b - 1];
        if (inside > most) {
            most = inside;
            best = b;
        }
    }
    const int low = max(best - 4, 0), high = min(best + 12, N_BINS);
    int total = 0, below = 0;
    for (int b = low; b < high; ++b) total += bins[b];
    if (total == 0) return 0.0f;
    for (int b = low; b < high; ++b) {
        if (2 * (below + bins[b]) >= total) {
            const float part = (0.5f * (float)total - (float)below) / (float)bins[b];
            return ((float)b + part) / 16.0f - 2.0f;
        }
        below += bins[b];
    }
    return 0.0f;
}

template <typename T>
__device__ void find_offsets(const T *__restrict__ raw, const unsigned char *__restrict__ stage,
                             const float *__restrict__ pedestal, const float *__restrict__ photon,
                             const int *__restrict__ order, const int *__restrict__ first, int P,
                             float *__restrict__ offset)
{
    __shared__ int bins[N_BINS];
    const int l = blockIdx.x;
    const long long d = blockIdx.y;
    for (int b = threadIdx.x; b < N_BINS; b += blockDim.x) bins[b] = 0;
    __syncthreads();
    for (int i = first[l] + threadIdx.x; i < first[l + 1]; i += blockDim.x) {
        const int p = order[i];
        if (stage && stage[d * P + p] != 0) continue;
        const float b = floorf(((float)raw[d * P + p] - pedestal[p]) * (16.0f / photon[l]) + 32.0f);
        if (b >= 0.0f && b < (float)N_BINS) atomicAdd(bins + (int)b, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) offset[d * gridDim.x + l] = middle_of_fullest(bins) * photon[l];
}

#define KERNELS(NAME, T)                                                                                            \
    extern "C" __global__ void convert_##NAME(                                                                      \
        const T *raw, const unsigned char *stage, const float *pedestal, const float *inverse_gain,                 \
        const int *panel, const float *offset, int S, int L, long long D, int P, float lift,                        \
        unsigned short *counts, float *signal)                                                                      \
    {                                                                                                               \
        convert(raw, stage, pedestal, inverse_gain, panel, offset, S, L, D, P, lift, counts, signal);               \
    }                                                                                                               \
    extern "C" __global__ void find_offsets_##NAME(const T *raw, const unsigned char *stage, const float *pedestal, \
                                                   const float *photon, const int *order, const int *first, int P,  \
                                                   float *offset)                                                   \
    {                                                                                                               \
        find_offsets(raw, stage, pedestal, photon, order, first, P, offset);                                        \
    }

KERNELS(uint16, unsigned short)
KERNELS(int16, short)
KERNELS(int32, int)
KERNELS(float32, float)
