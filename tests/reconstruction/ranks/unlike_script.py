"""A few steps on ranks that round differently; the first prints what each of them decided by, and its models.

Arguments: method, mesh.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import numpy as np

from made_up_frames import DIAMETER_A, made_up_frames
from orienteer.compute.ranks.mesh import Mesh
from orienteer.compute.ranks.sharing import use_threads
from orienteer.compute.ranks.world import world
from orienteer.mtip import mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.reconstruction import emc
from orienteer.reconstruction.course import turns
from orienteer.reconstruction.course.course import Progress, Turn
from orienteer.reconstruction.orienting import temperature
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.states import splitting

STEPS = 3
# That of a solver, too, which ends at a residual.
ROUNDING = 1e-7
# What comes out with other last bits on all ranks but the first.
UNLIKE = (
    (emc, "compress", "models"),
    (mtip, "merge_halves", "autocorrelations"),
    (mtip, "drawn_to_phased", "autocorrelations"),
    (temperature, "inverse_temperature_for_perplexity", ""),
    (turns, "watch_sentinels", "gain_nats"),
    (turns, "ask_sentinels", "evidence"),
    (splitting, "try_split", "gain"),
)


def rounded_otherwise(made: Callable[..., Any], field: str) -> Callable[..., Any]:
    """The same function with other last bits in what it returns, or in one field of that."""
    rng = np.random.default_rng(5)

    def noisy(x: Any) -> Any:
        whole = np.asarray(x)
        noise = ROUNDING * np.maximum(abs(whole), 1) * rng.choice([-1, 1], whole.shape)
        return (whole + noise).astype(whole.dtype) if whole.ndim else float(whole + noise)

    def other(*given: Any, **named: Any) -> Any:
        found = made(*given, **named)
        return replace(found, **{field: noisy(getattr(found, field))}) if field else noisy(found)

    return other


def main(method: str, shape: str) -> None:
    use_threads(1)
    mesh = Mesh.of(world(), shape)
    if not mesh.all.is_first:
        for module, name, field in UNLIKE:
            setattr(module, name, rounded_otherwise(getattr(module, name), field))
    is_too_early = mtip.Mtip._is_too_early
    mtip.Mtip._is_too_early = lambda self, model: False  # type: ignore[method-assign]
    source, settings = made_up_frames(60, 17, 2000.0), {"diameter_A": DIAMETER_A, "level": 3}
    run: emc.Emc
    if method == "mtip":
        run = mtip.Mtip(source, MtipSettings(**settings), seed=1, device="cpu", mesh=mesh)
    else:
        models = "auto" if method == "states" else 1
        run = emc.Emc(source, EmcSettings(**settings, models=models), seed=1, device="cpu", mesh=mesh)
    told: list[Any] = []
    judge = run.course.judge

    def noted(now: Progress) -> Turn:
        told.append(asdict(now))
        return judge(now)

    run.course.judge = noted  # type: ignore[method-assign]
    for _ in range(STEPS):
        run.step()
        told += [run.annealing.state(), asdict(run.watch) if run.watch else None]
    learnt = run.learnt()
    phased = [name for name in learnt if name == "models" or name.startswith("phasing/")]
    if method == "mtip":
        told.append({name: sha256(np.asarray(learnt[name]).tobytes()).hexdigest() for name in phased})
        run.course.stage, run._phasings = 1, {}  # type: ignore[attr-defined]
        run.half_correlation = np.full(99, 0.3 + (1e-9 if mesh.all.is_first else -1e-9))
        told.append(is_too_early(run, 0))  # type: ignore[arg-type]
    if method == "states":
        told += [turns.decide(run, "judge states"), run.growth.evidence.tolist()]
        told.append(splitting.likeliest_split(run).gain)
    ranks = mesh.all.gather(told)
    if mesh.all.is_first:
        print(json.dumps(ranks))


if __name__ == "__main__":
    main(*sys.argv[1:])
