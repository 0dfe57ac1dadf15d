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


def temper_listed(
    values: Array, value_start: Array, log_prior: Array, first_row: Array, frame_start: Array,
    frame_pair: Array, beta: Array, distance: Array, log_evidence: Array, total: Array, entropy: Array,
    best_row: Array, best_score: Array, counts: Array,
) -> None:  # fmt: skip
    """Distances below each frame's best, (n_values,); evidence and the like (D,); counts (N_BINS + 1, D)."""
    D = len(log_evidence)
    arguments = (
        values, value_start, log_prior, first_row, frame_start, frame_pair, beta, np.int32(D),
        distance, log_evidence, total, entropy, best_row, best_score, counts,
    )  # fmt: skip
    _launch("temper_listed", (D + _WARPS - 1) // _WARPS, 32 * _WARPS, arguments)


def keep_listed(
    distance: Array, value_start: Array, frame_start: Array, frame_pair: Array, lowest: Array,
    probability: Array, kept: Array,
) -> None:  # fmt: skip
    """Probabilities above the thresholds, which sum to 1 in each frame, and the sum kept before that (D,)."""
    D = len(kept)
    arguments = (distance, value_start, frame_start, frame_pair, lowest, np.int32(D), probability, kept)
    _launch("keep_listed", (D + _WARPS - 1) // _WARPS, 32 * _WARPS, arguments)


def listed_row_mass(
    probability: Array, value_start: Array, block_start: Array, pair_start: Array, mass: Array
) -> None:
    """Sum of p over the frames of a block, for each of its rows: mass (T,) float64."""
    arguments = (probability, value_start, block_start, pair_start, mass)
    _launch("listed_row_mass", len(block_start) - 1, 32, arguments)
