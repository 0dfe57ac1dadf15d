// The elementwise halves of an iteration: the GPU twin of _projection_numba.py.
//
//   modulus   F[b, m] = scale F sqrt(max(A_m^2 - g_b, 0)) / |F|        where the target A_m >= 0
//             F[b, m] = scale F min(1, bound_m / |F|)                  where the target is -bound_m
//   relax     x[b, v] = p           where support and t = p + reflect (p - x) >= 0 (or any sign)
//             x[b, v] = keep x + add p                                 elsewhere
//
// transform (B, M) float2     target (M,) float32     background g (B,) float32
// density x, projected p (B, V) float32               support (B, V) bool
//
// blockIdx.y is the start b; the threads of a row of blocks stride over its voxels.

extern "C" __global__ void project_modulus(float2 *transform, const float *target, const float *background,
                                           const float scale, const long long M)
{
    float2 *row = transform + blockIdx.y * M;
    const float below = background[blockIdx.y];
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long m = (long long)blockIdx.x * blockDim.x + threadIdx.x; m < M; m += stride) {
        float2 value = row[m];
        const float square = value.x * value.x + value.y * value.y;
        const float wanted = target[m];
        float factor = scale;
        if (wanted >= 0.f) {
            const float wanted2 = fmaxf(wanted * wanted - below, 0.f);
            if (square > 0.f) {
                factor = scale * sqrtf(wanted2 / square);
            } else {  // a voxel that is 0 has no phase; it becomes real and positive
                value.x = sqrtf(wanted2);
                value.y = 0.f;
            }
        } else if (square > wanted * wanted) {
            factor = scale * (-wanted * rsqrtf(square));
        }
        row[m] = make_float2(value.x * factor, value.y * factor);
    }
}

extern "C" __global__ void relax(float *density, const float *projected, const bool *support, const float keep,
                                 const float add, const float reflect, const bool positive, const long long V)
{
    const long long first = blockIdx.y * V;
    const long long stride = (long long)gridDim.x * blockDim.x;
    for (long long v = (long long)blockIdx.x * blockDim.x + threadIdx.x; v < V; v += stride) {
        const float x = density[first + v], p = projected[first + v];
        const bool allowed = support[first + v] && (!positive || p + reflect * (p - x) >= 0.f);
        density[first + v] = allowed ? p : keep * x + add * p;
    }
}
