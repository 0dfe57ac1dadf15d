"""Launches the kernels of ``listed.cu`` under the names and arguments of their CPU twins."""

from pathlib import Path
from typing import Any

import numpy as np

from orienteer.compute.arrays import Array
from orienteer.compute.kernels import load_kernels

_WARPS = 8  # frames of a block of threads


def _launch(name: str, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
    if blocks:
        kernel = load_kernels(Path(__file__).with_name("listed.cu")).get_function(name)
        kernel((blocks,), (threads,), arguments)


def _blocks(n: int) -> int:
    return (n + _WARPS - 1) // _WARPS


def best_listed(
    values: Array, value_start: Array, frame_start: Array, frame_pair: Array, log_prior: Array,
    first_row: Array, beta: Array, top: Array, best: Array, best_score: Array,
) -> None:  # fmt: skip
    """The maximum of x in each frame, and its chosen row and value, (D,); -inf and -1 if there is none."""
    D = len(top)
    lists = (values, value_start, frame_start, frame_pair, log_prior, first_row, beta)
    _launch("best_listed", _blocks(D), 32 * _WARPS, (*lists, np.int32(D), top, best, best_score))


def lower_listed(
    values: Array, value_start: Array, frame_start: Array, frame_pair: Array, log_prior: Array,
    first_row: Array, beta: Array, top: Array, part: float, distance: Array, total: Array, moment: Array,
    counts: Array,
) -> None:  # fmt: skip
    """Distances x - top (n_values,), their sums of e^x and x e^x (D,) in whole parts, and counts by bin."""
    D = len(total)
    lists = (values, value_start, frame_start, frame_pair, log_prior, first_row, beta, top)
    arguments = (*lists, np.float64(part), np.int32(D), distance, total, moment, counts)
    _launch("lower_listed", _blocks(D), 32 * _WARPS, arguments)


def keep_listed(
    distance: Array, value_start: Array, frame_start: Array, frame_pair: Array, lowest: Array, part: float,
    probability: Array, kept: Array,
) -> None:  # fmt: skip
    """exp(distance) of values above the thresholds, 0 for the others, and their sums (D,) in whole parts."""
    D = len(kept)
    lists = (distance, value_start, frame_start, frame_pair, lowest)
    arguments = (*lists, np.float64(part), np.int32(D), probability, kept)
    _launch("keep_listed", _blocks(D), 32 * _WARPS, arguments)


def scale_listed(probability: Array, value_start: Array, frame: Array, factor: Array) -> None:
    """Multiply the values of every pair by the factor (D,) of its frame."""
    n = len(frame)
    arguments = (probability, value_start, frame, factor, np.int64(n))
    _launch("scale_listed", _blocks(n), 32 * _WARPS, arguments)


def listed_row_mass(
    probability: Array, value_start: Array, block_start: Array, pair_start: Array, mass: Array
) -> None:
    """Sum of p over the frames of a block, for each of its rows: mass (T,) float64."""
    arguments = (probability, value_start, block_start, pair_start, mass)
    _launch("listed_row_mass", len(block_start) - 1, 32, arguments)
