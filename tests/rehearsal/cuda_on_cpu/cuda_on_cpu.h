// What CUDA gives to kernels, for g++: every kernel source is compiled behind this header.  See scheduler.cpp.
//
// One OS thread runs all threads of a launch, one after another, so that atomic operations are plain ones.

#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <string>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __noinline__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};
typedef uint3 dim3;

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern char *rehearsal_dynamic_shared;
const int warpSize = 32;

// Operations at which threads wait for each other; scheduler.cpp.
enum RehearsalMeeting { WARP_BARRIER, WARP_EXCHANGE, WARP_BALLOT };
void rehearsal_block_barrier();
uint64_t rehearsal_warp(RehearsalMeeting meeting, unsigned mask, uint64_t given, int from_lane);
int rehearsal_lane();

#define REHEARSAL_VECTORS(T, name, unit)                                                              \
    struct alignas(2 * unit) name##2 { T x, y; };                                                     \
    struct name##3 { T x, y, z; };                                                                    \
    struct alignas(4 * unit < 16 ? 4 * unit : 16) name##4 { T x, y, z, w; };                          \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                        \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
REHEARSAL_VECTORS(int, int, 4)
REHEARSAL_VECTORS(float, float, 4)
REHEARSAL_VECTORS(double, double, 8)
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <typename A, typename B> inline std::common_type_t<A, B> min(A a, B b)
{
    const std::common_type_t<A, B> x = a, y = b;
    return y < x ? y : x;
}
template <typename A, typename B> inline std::common_type_t<A, B> max(A a, B b)
{
    const std::common_type_t<A, B> x = a, y = b;
    return x < y ? y : x;
}

namespace rehearsal {
template <typename To, typename From> inline To bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "the same number of bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
inline unsigned short half_of(float value) { return bits<unsigned short>((_Float16)value); }
inline float float_of(unsigned short half) { return (float)bits<_Float16>(half); }
}  // namespace rehearsal

template <typename T> inline T __ldg(const T *at) { return *at; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
inline double rsqrt(double x) { return 1. / sqrt(x); }
inline int __float_as_int(float x) { return rehearsal::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return rehearsal::bits<unsigned>(x); }
inline float __int_as_float(int x) { return rehearsal::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return rehearsal::bits<float>(x); }
inline long long __double2ll_rn(double x) { return llrint(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((uint64_t)a * b) >> 32); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline void __threadfence() {}
inline void __threadfence_block() {}

inline void __syncthreads() { rehearsal_block_barrier(); }
inline void __syncwarp(unsigned mask = ~0u) { rehearsal_warp(WARP_BARRIER, mask, 0, 0); }
inline unsigned __ballot_sync(unsigned mask, int holds)
{
    return (unsigned)rehearsal_warp(WARP_BALLOT, mask, holds != 0, 0);
}
inline int __any_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) != 0; }
inline int __all_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) == mask; }

template <typename T> inline T rehearsal_shuffle(unsigned mask, T value, int from_lane)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA shuffles numbers of 4 or 8 bytes");
    uint64_t given = 0;
    memcpy(&given, &value, sizeof value);
    given = rehearsal_warp(WARP_EXCHANGE, mask, given, from_lane);
    memcpy(&value, &given, sizeof value);
    return value;
}
// A lane whose partner lies outside its group of ``width`` lanes keeps its own number.
template <typename T> inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    const int first = rehearsal_lane() & ~(width - 1);
    return rehearsal_shuffle(mask, value, first + (lane & (width - 1)));
}
template <typename T> inline T __shfl_xor_sync(unsigned mask, T value, int flipped, int width = 32)
{
    const int lane = rehearsal_lane(), other = lane ^ flipped;
    return rehearsal_shuffle(mask, value, other < (lane & ~(width - 1)) + width ? other : lane);
}
template <typename T> inline T __shfl_down_sync(unsigned mask, T value, unsigned step, int width = 32)
{
    const int lane = rehearsal_lane();
    return rehearsal_shuffle(mask, value, (lane & (width - 1)) + (int)step < width ? lane + (int)step : lane);
}
template <typename T> inline T __shfl_up_sync(unsigned mask, T value, unsigned step, int width = 32)
{
    const int lane = rehearsal_lane();
    return rehearsal_shuffle(mask, value, (lane & (width - 1)) >= (int)step ? lane - (int)step : lane);
}

// CUDA has these for the types below only, and no others.
#define REHEARSAL_ATOMIC(name, T, result)                                                             \
    inline T name(T *at, T value)                                                                     \
    {                                                                                                 \
        const T old = *at;                                                                            \
        *at = (result);                                                                               \
        return old;                                                                                   \
    }
#define REHEARSAL_ATOMICS(name, result)                                                               \
    REHEARSAL_ATOMIC(name, int, result)                                                               \
    REHEARSAL_ATOMIC(name, unsigned, result)                                                          \
    REHEARSAL_ATOMIC(name, unsigned long long, result)
REHEARSAL_ATOMICS(atomicAdd, old + value)
REHEARSAL_ATOMIC(atomicAdd, float, old + value)
REHEARSAL_ATOMIC(atomicAdd, double, old + value)
REHEARSAL_ATOMICS(atomicMax, old < value ? value : old)
REHEARSAL_ATOMIC(atomicMax, long long, old < value ? value : old)
REHEARSAL_ATOMICS(atomicMin, value < old ? value : old)
REHEARSAL_ATOMIC(atomicMin, long long, value < old ? value : old)
REHEARSAL_ATOMICS(atomicExch, value)
REHEARSAL_ATOMIC(atomicExch, float, value)
REHEARSAL_ATOMICS(atomicAnd, old & value)
REHEARSAL_ATOMICS(atomicOr, old | value)
REHEARSAL_ATOMICS(atomicXor, old ^ value)
