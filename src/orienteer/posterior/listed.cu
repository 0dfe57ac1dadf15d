// Posteriors of frames over their own lists of blocks: GPU twin of _listed_numba.py.
//
//   x_v = beta_d (S_v - reference_d) + log_prior_k        v the value of frame d and chosen row k
//   distance_v = x_v - top_d                              top_d the best of the frame
//   p_v = exp(distance_v) / sum                           over those above lowest_d, the others 0
//
// values (n_values,) float32, pair after pair: pair j has values value_start[j] .. value_start[j + 1], which belong
// to the chosen rows first_row[j], first_row[j] + 1, ...; the pairs of frame d are
// frame_pair[frame_start[d] .. frame_start[d + 1]], rows ascending.
// One warp per frame, its lanes take the pairs in turn and are joined in a fixed order: the same bits in each run.

#include "top_key.cuh"

typedef long long Index;

#define BINS_PER_NAT 4.f
#define N_BINS 128
#define WARPS 8
#define MINUS_INFINITY __int_as_float(0xff800000)

__device__ __forceinline__ double sum_of_warp(double value)
{
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
    return value;
}

extern "C" __global__ void temper_listed(
    const float *__restrict__ values, const Index *__restrict__ value_start, const float *__restrict__ log_prior,
    const Index *__restrict__ first_row, const Index *__restrict__ frame_start, const Index *__restrict__ frame_pair,
    const float *__restrict__ beta, int D, float *__restrict__ distance, double *__restrict__ log_evidence,
    double *__restrict__ total, double *__restrict__ entropy, Index *__restrict__ best_row,
    float *__restrict__ best_score, int *__restrict__ counts)
{
    __shared__ int bins[WARPS][N_BINS + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, d = blockIdx.x * WARPS + warp;
    if (d >= D) return;  // the whole warp leaves, and no barrier is for more than a warp
    int *own = bins[warp];
    for (int bin = lane; bin <= N_BINS; bin += 32) own[bin] = 0;
    __syncwarp();

    const Index start = frame_start[d], end = frame_start[d + 1];
    float reference = start < end ? values[value_start[frame_pair[start]]] : 0.f;
    if (!isfinite(reference)) reference = 0.f;
    Key key = 0;
    for (Index j = start + lane; j < end; j += 32) {
        const Index pair = frame_pair[j], first = value_start[pair], row = first_row[pair];
        for (Index v = first; v < value_start[pair + 1]; ++v) {
            const float x = fmaf(beta[d], values[v] - reference, log_prior[row + v - first]);
            distance[v] = x;
            if (x > NOTHING) key = max(key, key_of(x, row + v - first));
        }
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, lanes));

    const float top = value_of(key);
    const Index best = key ? (Index)(0xffffffffu - (unsigned)key) : -1;
    double sum = 0., moment = 0.;
    if (lane == 0) best_score[d] = MINUS_INFINITY;
    __syncwarp();
    for (Index j = start + lane; j < end; j += 32) {
        const Index pair = frame_pair[j], first = value_start[pair], row = first_row[pair];
        for (Index v = first; v < value_start[pair + 1]; ++v) {
            float below = distance[v] - top;
            if (row + v - first == best) best_score[d] = values[v];
            if (below > NOTHING) {
                const float p = __expf(below), place = -below * BINS_PER_NAT;
                sum += p;
                moment += (double)p * below;
                atomicAdd(own + (place < (float)N_BINS ? (int)place : N_BINS), 1);
            } else {
                below = MINUS_INFINITY;
            }
            distance[v] = below;
        }
    }
    sum = sum_of_warp(sum);
    moment = sum_of_warp(moment);
    __syncwarp();
    for (int bin = lane; bin <= N_BINS; bin += 32) counts[(Index)bin * D + d] = own[bin];
    if (lane == 0) {
        best_row[d] = best;
        total[d] = sum;
        log_evidence[d] = sum > 0. ? log(sum) + top + (double)beta[d] * reference : (double)MINUS_INFINITY;
        entropy[d] = sum > 0. ? log(sum) - moment / sum : 0.;
    }
}

// probability may be distance itself.
extern "C" __global__ void keep_listed(const float *distance, const Index *__restrict__ value_start,
                                       const Index *__restrict__ frame_start, const Index *__restrict__ frame_pair,
                                       const float *__restrict__ lowest, int D, float *probability,
                                       double *__restrict__ kept)
{
    const int lane = threadIdx.x % 32, d = blockIdx.x * WARPS + threadIdx.x / 32;
    if (d >= D) return;
    const Index start = frame_start[d], end = frame_start[d + 1];
    double sum = 0.;
    for (Index j = start + lane; j < end; j += 32) {
        const Index pair = frame_pair[j];
        for (Index v = value_start[pair]; v < value_start[pair + 1]; ++v) {
            const float p = distance[v] > lowest[d] ? __expf(distance[v]) : 0.f;
            probability[v] = p;
            sum += p;
        }
    }
    sum = sum_of_warp(sum);
    if (lane == 0) kept[d] = sum;
    const float factor = sum > 0. ? (float)(1. / sum) : 0.f;
    for (Index j = start + lane; j < end; j += 32) {
        const Index pair = frame_pair[j];
        for (Index v = value_start[pair]; v < value_start[pair + 1]; ++v) probability[v] *= factor;
    }
}

// mass (T,): sum of p over the frames of a block for each of its rows.  One block of threads per block.
extern "C" __global__ void listed_row_mass(const float *__restrict__ probability,
                                           const Index *__restrict__ value_start,
                                           const Index *__restrict__ block_start,
                                           const Index *__restrict__ pair_start, double *__restrict__ mass)
{
    const Index b = blockIdx.x, first = block_start[b], width = block_start[b + 1] - first;
    for (Index i = threadIdx.x; i < width; i += blockDim.x) {
        double sum = 0.;
        for (Index pair = pair_start[b]; pair < pair_start[b + 1]; ++pair)
            sum += probability[value_start[pair] + i];
        mass[first + i] = sum;
    }
}
