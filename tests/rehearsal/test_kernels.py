"""Kernels give what CUDA gives; and what is wrong with a kernel, or with its call, is found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.compute.arrays import import_cupy
from orienteer.compute.kernels import whole_text

pytestmark = pytest.mark.gpu
only_rehearsed = pytest.mark.usefixtures("only_rehearsed")


def kernel(code: str, *options: str) -> Any:
    """The kernel ``work`` of a source."""
    cupy: Any = import_cupy()
    return cupy.RawModule(code=code, options=("--std=c++17", *options)).get_function("work")


def run(
    code: str, out: Any, *arguments: Any, block: int = 64, grid: int = 1, options: tuple[str, ...] = ()
) -> Any:
    """What the kernel has written to ``out``."""
    far = import_cupy().asarray(out)  # type: ignore[union-attr]
    kernel(code, *options)((grid,), (block,), (far, *arguments))
    return far.get()


def test_lanes_exchange_numbers_as_on_a_card() -> None:
    found = run(
        """
        extern "C" __global__ void work(int (*out)[6]) {
            const int t = threadIdx.x, lane = t % 32;
            out[t][0] = __shfl_xor_sync(~0u, t, 5);
            out[t][1] = __shfl_down_sync(~0u, t, 3);
            out[t][2] = __shfl_up_sync(~0u, t, 3);
            out[t][3] = __shfl_sync(~0u, t, 40);
            out[t][4] = __popc(__ballot_sync(~0u, lane % 3 == 0) & ((1u << lane) - 1u));
            double sum = t;
            for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
            out[t][5] = (int)sum;
        }
        """,
        np.zeros((64, 6), np.int32),
    )
    t = np.arange(64)
    lane, first = t % 32, t // 32 * 32
    np.testing.assert_array_equal(found[:, 0], first + (lane ^ 5))
    np.testing.assert_array_equal(found[:, 1], np.where(lane + 3 < 32, t + 3, t))
    np.testing.assert_array_equal(found[:, 2], np.where(lane >= 3, t - 3, t))
    np.testing.assert_array_equal(found[:, 3], first + 8)
    np.testing.assert_array_equal(found[:, 4], (lane + 2) // 3)
    np.testing.assert_array_equal(found[:, 5], first * 32 + 496)


def test_atomic_operations_lose_nothing() -> None:
    found = run(
        """
        extern "C" __global__ void work(unsigned long long *out) {
            __shared__ int counted;
            if (threadIdx.x == 0) counted = 0;
            __syncthreads();
            atomicAdd(&counted, (int)threadIdx.x);
            __syncthreads();
            if (threadIdx.x == 0) atomicAdd(out, (unsigned long long)counted);
            atomicMax(out + 1, (unsigned long long)(blockIdx.x * blockDim.x + threadIdx.x));
        }
        """,
        np.zeros(2, np.uint64),
        grid=5,
    )
    assert found.tolist() == [5 * 64 * 63 // 2, 319]


def test_halves_are_those_of_numpy() -> None:
    header = whole_text(Path(orienteer.__file__).parent / "compute" / "half.cuh")
    code = """
        extern "C" __global__ void work(Half *out, const Half *half, const float *single, float *back) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[i] = to_half(single[i]);
            back[i] = from_half(half[i]);
        }
        """
    cupy: Any = import_cupy()
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)][: 64 * 900]
    singles = (
        np.random.default_rng(0).normal(size=halves.size) * 10.0 ** np.linspace(-9, 4.6, halves.size)
    ).astype("f4")
    back = cupy.empty(halves.size, np.float32)
    arguments = (cupy.asarray(halves), cupy.asarray(singles), back)
    found = run(header + code, np.zeros(halves.size, np.float16), *arguments, grid=900)
    np.testing.assert_array_equal(back.get(), halves.astype(np.float32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, singles.astype(np.float16))


REVERSED = """
    extern "C" __global__ void work(float *out) {
        __shared__ float shared[64];
        shared[threadIdx.x] = threadIdx.x;
        BARRIER
        out[threadIdx.x] = shared[63 - threadIdx.x];
    }
    """
FROM_THE_FIRST = """
    extern "C" __global__ void work(float *out) {
        __shared__ float shared;
        if (threadIdx.x == 0) shared = 5.f;
        BARRIER
        out[threadIdx.x] = shared;
    }
    """
TO_THE_FIRST = """
    extern "C" __global__ void work(float *out) {
        __shared__ float shared[64];
        shared[threadIdx.x] = 1.f;
        BARRIER
        float sum = 0.f;
        for (int t = 0; t < 64; ++t) sum += shared[t];
        if (threadIdx.x == 0) out[0] = sum;
    }
    """


OVERWRITTEN = """
    extern "C" __global__ void work(float *out) {
        __shared__ float of_warp[2];
        for (int turn = 0; turn < 3; ++turn) {
            const int all = __popc(__ballot_sync(~0u, turn < 2));
            if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all;
            __syncthreads();
            if (turn == 1) out[threadIdx.x] = of_warp[0] + of_warp[1] == 64.f ? 1.f : nanf("");
            BARRIER
        }
    }
    """


@only_rehearsed
@pytest.mark.parametrize("code", [REVERSED, FROM_THE_FIRST, TO_THE_FIRST, OVERWRITTEN])
def test_a_missing_barrier_shows(code: str) -> None:
    right = run(code, np.zeros(64, np.float32), options=("-DBARRIER=__syncthreads();",))
    wrong = run(code, np.zeros(64, np.float32), options=("-DBARRIER=",))
    assert np.isfinite(right).all()
    assert np.isnan(wrong).any()


@only_rehearsed
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("if (threadIdx.x < 32) __syncthreads();", "32 of 64 threads wait at __syncthreads.* 32 have ended"),
        ("if (threadIdx.x % 32) __shfl_xor_sync(~0u, 1, 1);", "62 in an operation of their warp.* 2 have"),
        ("__shared__ int s[8]; s[threadIdx.x] = 1; out[0] = s[7];", "an index beyond the end of its array"),
        ("*(float4 *)(out + 1) = make_float4(1, 2, 3, 4);", "not a multiple of the size"),
        ("out[0] = (int)gridDim.x * 2000000000 * 3;", "too large for its type"),
        ("((int *)0)[0] = 1;", "a null pointer"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_kernel_ends_it(line: str, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        run(f'extern "C" __global__ void work(int *out) {{ {line} }}', np.zeros(64, np.int32))
    # Others run after it.
    assert run('extern "C" __global__ void work(int *out) { out[0] = 3; }', np.zeros(1, np.int32))[0] == 3


@only_rehearsed
def test_arguments_that_the_kernel_reads_as_another_type_are_refused() -> None:
    cupy: Any = import_cupy()
    parameters = "float *out, int n, float x, const bool yes, const void *any"
    code = f'extern "C" __global__ void work({parameters}) {{ out[0] = n * x; }}'
    work, out = kernel(code), cupy.zeros(1, np.float32)
    right = (out, np.int32(3), np.float32(2), np.bool_(True), np.uintp(0))
    work((1,), (1,), right)
    assert out.get()[0] == 6
    wrong = {
        0: [cupy.zeros(1), cupy.zeros(1, np.int32), np.uintp(8), np.zeros(1, np.float32), np.float64(0)],
        1: [3, np.int64(3), np.float32(3), cupy.zeros(1, np.int32)],
        2: [2.0, np.float64(2), np.int32(2)],
        3: [np.int32(1), 1],
    }
    for place, values in wrong.items():
        for value in values:
            with pytest.raises(TypeError):
                work((1,), (1,), (*right[:place], value, *right[place + 1 :]))
    with pytest.raises(TypeError, match="5 parameters, not 4"):
        work((1,), (1,), right[:4])
    for grid, block in (((0,), (1,)), ((1,), (1025,)), ((1, 1 << 16), (1,))):
        with pytest.raises(RuntimeError, match="INVALID_VALUE"):
            work(grid, block, right)


@only_rehearsed
def test_more_threads_than_the_launch_bounds_are_refused() -> None:
    cupy: Any = import_cupy()
    work = kernel('extern "C" __global__ void __launch_bounds__(2 * 32) work(int *out) {}')
    work((1,), (64,), (cupy.zeros(1, np.int32),))
    with pytest.raises(RuntimeError, match="__launch_bounds__ allow 64"):
        work((1,), (96,), (cupy.zeros(1, np.int32),))
