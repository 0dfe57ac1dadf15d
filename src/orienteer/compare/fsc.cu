// Sums over the shells of two half transforms: the GPU twin of _fsc_numba.py.
//
//   sums[block][0][s] = sum Re A B*,  [1][s] = sum |A|^2,  [2][s] = sum |B|^2     over the whole shell s
//
// a, b  (n, n, n/2 + 1) complex128 as double2, in the order of the FFT
// s     nearest whole number to |q| in voxels; what lies beyond S - 1 is left out
// sums  (blocks, 3, S) float64
//
// A block walks over some lines of q_z and adds up in shared memory, so that both transforms are read once and
// nothing else is.  The half that is not stored counts by a weight of 2; the plane q_z = 0 holds both of a pair.

extern "C" __global__ void shell_products(const double2 *__restrict__ a, const double2 *__restrict__ b, int n, int S,
                                          int lines_of_a_block, double *__restrict__ sums)
{
    extern __shared__ double shell[];  // (3, S)
    for (int e = threadIdx.x; e < 3 * S; e += blockDim.x) shell[e] = 0.0;
    __syncthreads();
    const int half = n / 2 + 1;
    const long long first = (long long)blockIdx.x * lines_of_a_block;
    for (int e = threadIdx.x; e < lines_of_a_block * half; e += blockDim.x) {
        const long long line = first + e / half;
        if (line >= (long long)n * n) break;
        const int x = (int)(line / n), y = (int)(line % n), w = e % half;
        const int u = x <= n / 2 ? x : x - n, v = y <= n / 2 ? y : y - n;
        const int s = (int)(sqrt((double)(u * u + v * v + w * w)) + 0.5);
        if (s >= S) continue;
        const double weight = w == 0 ? 1.0 : 2.0;
        const double2 p = a[line * half + w], q = b[line * half + w];
        atomicAdd(shell + s, weight * (p.x * q.x + p.y * q.y));
        atomicAdd(shell + S + s, weight * (p.x * p.x + p.y * p.y));
        atomicAdd(shell + 2 * S + s, weight * (q.x * q.x + q.y * q.y));
    }
    __syncthreads();
    double *mine = sums + (long long)blockIdx.x * 3 * S;
    for (int e = threadIdx.x; e < 3 * S; e += blockDim.x) mine[e] = shell[e];
}
