"""Random numbers of the device: other ones than those of CuPy, which no test may depend on."""

from typing import Any

import numpy as np

from cupy._strict import inside, outside

_METHODS = [
    "beta", "binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric",
    "hypergeometric", "integers", "logseries", "poisson", "power", "random", "standard_exponential",
    "standard_gamma", "standard_normal", "uniform",
]  # fmt: skip


class Generator:
    """Draws of one seed."""

    def __init__(self, seed: Any = None) -> None:
        self._draws = np.random.default_rng(seed)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in _METHODS:
            raise AttributeError(f"cupy.random.Generator has no {name}")
        method = getattr(self._draws, name)

        def draw(*given: Any, **named: Any) -> Any:
            here = {key: inside(value, name) for key, value in named.items()}
            return outside(method(*(inside(each, name) for each in given), **here))

        return draw


def default_rng(seed: Any = None) -> Generator:
    return Generator(seed)


_legacy = np.random.RandomState(0)


def seed(seed: Any = None) -> None:
    _legacy.seed(seed)


def random(size: Any = None, dtype: Any = float) -> Any:
    return outside(np.asarray(_legacy.random_sample(size)).astype(dtype))


def standard_normal(size: Any = None, dtype: Any = float) -> Any:
    return outside(np.asarray(_legacy.standard_normal(size)).astype(dtype))


def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
    return outside(np.asarray(_legacy.randint(low, high, size)).astype(dtype))


def permutation(a: Any) -> Any:
    return outside(_legacy.permutation(inside(a, "random.permutation")))
