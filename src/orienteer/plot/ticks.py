"""Round numbers as ticks of an axis."""

import math


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most ``most`` round numbers between ``low`` and ``high``, evenly spaced.

    >>> linear_ticks(0, 1), linear_ticks(-3.1, 12, 4), linear_ticks(0.01, 0.037)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0, 10.0], [0.01, 0.015, 0.02, 0.025, 0.03, 0.035])
    """
    rough = (high - low) / max(1, most - 1)
    decade = 10.0 ** math.floor(math.log10(rough))
    step = next(
        step * decade
        for step in (1, 2, 2.5, 5, 10, 20)
        if math.floor(high / (step * decade) + 1e-9) - math.ceil(low / (step * decade) - 1e-9) < most
    )
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # A step has two digits at most.
    decimals = 1 - math.floor(math.log10(step))
    return [round(index * step, decimals) for index in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most ``most`` round numbers between ``low`` and ``high``, evenly spread on a logarithmic scale.

    If ``low`` and ``high`` are too close for round numbers of this kind, the ticks are evenly spaced.

    >>> log_ticks(0.9, 60), log_ticks(0.001, 1e5), log_ticks(1.4, 3.2)
    ([1.0, 2.0, 5.0, 10.0, 20.0, 50.0], [0.001, 0.1, 10.0, 1000.0, 100000.0], [1.5, 2.0, 3.0])
    >>> log_ticks(0.87, 1.38), log_ticks(3.11, 3.14)
    ([0.9, 1.0, 1.1, 1.2, 1.3], [3.11, 3.12, 3.13, 3.14])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1,)):
        round_ones = [float(f"{step}e{decade}") for decade in decades for step in steps]
        ticks = [tick for tick in round_ones if low <= tick <= high]
        if 3 <= len(ticks) <= most:
            return ticks
    return ticks[:: -(-len(ticks) // most)] if len(ticks) > 1 else linear_ticks(low, high, most)
