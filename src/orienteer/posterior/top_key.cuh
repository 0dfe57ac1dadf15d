// A maximum and its row in one number, which is larger for a larger maximum and, of equal ones, for a lower row.

typedef unsigned long long Key;

#define NOTHING (-3e38f)  // below all scores

__device__ __forceinline__ Key key_of(float x, unsigned row)
{
    const unsigned bits = __float_as_uint(x);
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return ((Key)ordered << 32) | (0xffffffffu - row);
}

__device__ __forceinline__ float value_of(Key key)
{
    if (key == 0) return NOTHING;
    const unsigned ordered = (unsigned)(key >> 32);
    return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}
