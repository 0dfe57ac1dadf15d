// Posteriors of frames over their own lists of blocks: GPU twin of _listed_numba.py.
//
//   x_v = beta_d S_v + log_prior_k                        v the value of frame d and chosen row k, in float64
//   distance_v = x_v - top_d                              top_d the best of the frame
//   p_v = exp(distance_v) factor_d                        if distance_v > lowest_d, else 0
//
// values (n_values,) float32, pair after pair: pair j has values value_start[j] .. value_start[j + 1], which belong
// to the chosen rows first_row[j], first_row[j] + 1, ...; the pairs of frame d are
// frame_pair[frame_start[d] .. frame_start[d + 1]], rows ascending.
// One warp per frame, its lanes take the pairs in turn and are joined in a fixed order: the same bits in each run.

typedef long long Index;

#define BINS_PER_NAT 4.f
#define N_BINS 128
#define WARPS 8
#define MINUS_INFINITY __int_as_float(0xff800000)
#define NOTHING (-3e38f)  // below all distances

__device__ __forceinline__ double sum_of_warp(double value)
{
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(0xffffffffu, value, lanes);
    return value;
}

__device__ __forceinline__ double tempered(float value, float beta, float log_prior)
{
    return fma((double)beta, (double)value, (double)log_prior);
}

// top, best, best_score (D,): the maximum of x, and the chosen row and value there; -inf and -1 if there is none.
extern "C" __global__ void best_listed(
    const float *__restrict__ values, const Index *__restrict__ value_start, const Index *__restrict__ frame_start,
    const Index *__restrict__ frame_pair, const float *__restrict__ log_prior, const Index *__restrict__ first_row,
    const float *__restrict__ beta, int D, double *__restrict__ top, Index *__restrict__ best,
    float *__restrict__ best_score)
{
    const int lane = threadIdx.x % 32, d = blockIdx.x * WARPS + threadIdx.x / 32;
    if (d >= D) return;  // the whole warp leaves; no barrier spans more than one warp
    double highest = (double)MINUS_INFINITY;
    Index at = -1;
    float score = MINUS_INFINITY;
    for (Index j = frame_start[d] + lane; j < frame_start[d + 1]; j += 32) {
        const Index pair = frame_pair[j], first = value_start[pair], row = first_row[pair];
        for (Index v = first; v < value_start[pair + 1]; ++v) {
            const double x = tempered(values[v], beta[d], log_prior[row + v - first]);
            if (x > highest) {
                highest = x;
                at = row + v - first;
                score = values[v];
            }
        }
    }
    // A lane meets its rows in ascending order and keeps the first of equal ones; so does the warp.
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, highest, lanes);
        const Index other_at = __shfl_xor_sync(0xffffffffu, at, lanes);
        const float other_score = __shfl_xor_sync(0xffffffffu, score, lanes);
        if (other > highest || (other == highest && other_at >= 0 && other_at < at)) {
            highest = other;
            at = other_at;
            score = other_score;
        }
    }
    if (lane == 0) {
        top[d] = highest;
        best[d] = at;
        best_score[d] = score;
    }
}

// distance (n_values,) = x - top; total, moment (D,): sums of e^distance and distance e^distance; counts by bin.
// The sum of each pair is rounded to whole multiples of part, which is the same for all pairs and ranks: such numbers
// add up to the same total in any order.
extern "C" __global__ void lower_listed(
    const float *__restrict__ values, const Index *__restrict__ value_start, const Index *__restrict__ frame_start,
    const Index *__restrict__ frame_pair, const float *__restrict__ log_prior, const Index *__restrict__ first_row,
    const float *__restrict__ beta, const double *__restrict__ top, double part, int D, float *__restrict__ distance,
    double *__restrict__ total, double *__restrict__ moment, int *__restrict__ counts)
{
    __shared__ int bins[WARPS][N_BINS + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, d = blockIdx.x * WARPS + warp;
    if (d >= D) return;
    int *own = bins[warp];
    for (int bin = lane; bin <= N_BINS; bin += 32) own[bin] = 0;
    __syncwarp();
    double sum = 0., weighted = 0.;
    for (Index j = frame_start[d] + lane; j < frame_start[d + 1]; j += 32) {
        const Index pair = frame_pair[j], first = value_start[pair], row = first_row[pair];
        double of_pair = 0., weighted_of_pair = 0.;
        for (Index v = first; v < value_start[pair + 1]; ++v) {
            float below = (float)(tempered(values[v], beta[d], log_prior[row + v - first]) - top[d]);
            if (below > NOTHING) {
                const float p = __expf(below), place = -below * BINS_PER_NAT;
                of_pair += p;
                weighted_of_pair += (double)p * below;
                atomicAdd(own + (place < (float)N_BINS ? (int)place : N_BINS), 1);
            } else {
                below = MINUS_INFINITY;
            }
            distance[v] = below;
        }
        sum += rint(of_pair / part) * part;
        weighted += rint(weighted_of_pair / part) * part;
    }
    sum = sum_of_warp(sum);
    weighted = sum_of_warp(weighted);
    __syncwarp();
    for (int bin = lane; bin <= N_BINS; bin += 32) counts[(Index)bin * D + d] = own[bin];
    if (lane == 0) {
        total[d] = sum;
        moment[d] = weighted;
    }
}

// probability may be distance itself; kept (D,): the sum of exp(distance) above the threshold, in whole parts.
extern "C" __global__ void keep_listed(const float *distance, const Index *__restrict__ value_start,
                                       const Index *__restrict__ frame_start, const Index *__restrict__ frame_pair,
                                       const float *__restrict__ lowest, double part, int D, float *probability,
                                       double *__restrict__ kept)
{
    const int lane = threadIdx.x % 32, d = blockIdx.x * WARPS + threadIdx.x / 32;
    if (d >= D) return;
    double sum = 0.;
    for (Index j = frame_start[d] + lane; j < frame_start[d + 1]; j += 32) {
        const Index pair = frame_pair[j];
        double of_pair = 0.;
        for (Index v = value_start[pair]; v < value_start[pair + 1]; ++v) {
            const float p = distance[v] > lowest[d] ? __expf(distance[v]) : 0.f;
            probability[v] = p;
            of_pair += p;
        }
        sum += rint(of_pair / part) * part;
    }
    sum = sum_of_warp(sum);
    if (lane == 0) kept[d] = sum;
}

// Multiply the values of every pair by the factor (D,) of its frame.  One warp per pair.
extern "C" __global__ void scale_listed(float *__restrict__ probability, const Index *__restrict__ value_start,
                                        const int *__restrict__ frame, const float *__restrict__ factor,
                                        Index n_pairs)
{
    const Index pair = (Index)blockIdx.x * WARPS + threadIdx.x / 32;
    if (pair >= n_pairs) return;
    for (Index v = value_start[pair] + threadIdx.x % 32; v < value_start[pair + 1]; v += 32)
        probability[v] *= factor[frame[pair]];
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
