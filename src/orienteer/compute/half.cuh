// float16 numbers without a header of CUDA, because NVRTC comes without headers.

typedef unsigned short Half;

__device__ __forceinline__ Half to_half(float value)
{
    Half half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

__device__ __forceinline__ float from_half(Half half)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
}
