// How a kernel is called with the addresses of its arguments, and what its parameters are, as text for Python.
//
// A parameter is P for a pointer, then a letter of NumPy (b: bool, i, u, f, v: void) and the bytes of one number.

#pragma once
#include "cuda_on_cpu.h"

namespace rehearsal {
template <typename T, typename = void> struct One {  // the number that a vector such as float4 is made of
    typedef T type;
};
template <typename T> struct One<T, std::void_t<decltype(T::x)>> {
    typedef decltype(T::x) type;
};

template <typename T> std::string kind()
{
    typedef std::remove_cv_t<std::remove_all_extents_t<T>> Plain;
    if constexpr (std::is_void_v<Plain>) {
        return "v1";
    } else {
        typedef typename One<Plain>::type Number;
        const char letter = std::is_same_v<Number, bool>       ? 'b'
                            : std::is_floating_point_v<Number> ? 'f'
                            : std::is_signed_v<Number>         ? 'i'
                                                               : 'u';
        return letter + std::to_string(sizeof(Number));
    }
}

template <typename T> std::string parameter()
{
    if constexpr (std::is_pointer_v<T>)
        return "P" + kind<std::remove_pointer_t<T>>();
    else
        return kind<T>();
}

template <typename... T> std::string signature(void (*)(T...))
{
    std::string text;
    ((text += parameter<T>() + " "), ...);
    return text;
}

template <typename... T, size_t... I>
inline void call(void (*kernel)(T...), void **arguments, std::index_sequence<I...>)
{
    kernel(*reinterpret_cast<T *>(arguments[I])...);
}
template <typename... T> inline void apply(void (*kernel)(T...), void **arguments)
{
    call(kernel, arguments, std::index_sequence_for<T...>());
}
}  // namespace rehearsal

struct RehearsalShared {  // a variable of __shared__ memory
    char *start, *stop;
};
const char *rehearsal_run(void (*body)(void **), void **arguments, const unsigned *grid, const unsigned *block,
                          size_t dynamic_bytes, const RehearsalShared *shared, int n_shared);
#define REHEARSAL_EXPORT extern "C" __attribute__((visibility("default")))
