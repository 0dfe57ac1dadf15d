"""Made-up logs of stages, with the troubles that a weather plot is to find, for pictures and tests."""

import json
from pathlib import Path

import numpy as np

BEGIN = 1_763_000_000.0


def write_logs(
    folder: Path, n_ranks: int = 8, n_iterations: int = 6, n_batches: int = 6, *,
    slow: dict[int, float] | None = None,
    stall: tuple[int, float, tuple[int, ...]] | None = None, bad: tuple[int, int, float] | None = None,
    pause: tuple[int, int, float] | None = None, ranks_per_host: int = 4, seed: int = 0,
) -> None:  # fmt: skip
    """Logs of ranks that each orient batches of 100 frames, about a second each.

    slow : how many times as long a rank takes; stall : iteration, seconds and the ranks that stand still.
    bad : a rank, one of its batches, and how many times as long it takes in every iteration.
    pause : a rank, an iteration and how many times as long one batch takes then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    now = np.full(n_ranks, BEGIN)
    lines: list[list[dict[str, object]]] = [
        [
            {
                "iteration": 0, "stage": "begin", "start": BEGIN, "seconds": 0.0, "rank": rank,
                "ranks": n_ranks, "host": f"node{rank // ranks_per_host:02d}", "process": 100 + rank,
            }
        ]
        for rank in range(n_ranks)
    ]  # fmt: skip

    def add(rank: int, iteration: int, stage: str, seconds: float, **more: object) -> None:
        line = {"iteration": iteration, "stage": stage, "start": now[rank], "seconds": seconds, **more}
        lines[rank].append(line)
        now[rank] += seconds

    for iteration in range(1, n_iterations + 1):
        for rank in range(n_ranks):
            add(rank, iteration, "temperature", 0.2)
            for batch in range(n_batches):
                waits = 0.02
                if stall and stall[0] == iteration and rank in stall[2] and batch == 2:
                    waits = stall[1]
                add(rank, iteration, "read", waits)
                factor = (slow or {}).get(rank, 1.0)
                if bad and (rank, batch) == bad[:2]:
                    factor *= bad[2]
                if pause and (rank, iteration) == pause[:2] and batch == 1:
                    factor *= pause[2]
                seconds = factor * (1 + 0.1 * iteration) * rng.normal(1.0, 0.03)
                first = (rank * n_batches + batch) * 100
                add(rank, iteration, "orient", seconds, frames=100, first=first)
        end = now.max()
        for rank in range(n_ranks):
            add(rank, iteration, "wait", end - now[rank] + 0.05)
            add(rank, iteration, "solve", 0.6)
            add(rank, iteration, "nuisances", 0.3)
        add(0, iteration, "save", 0.2)
    for rank, own in enumerate(lines):
        text = "".join(json.dumps(line) + "\n" for line in own)
        (folder / f"events_rank_{rank:03d}.jsonl").write_text(text)
