"""Promises of a whole reconstruction: the same bits again, no truth read, no frame used twice."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings

# With icosahedral poses every stage is over soon, so that few iterations pass through all of a run.
EVERYTHING: dict[str, Any] = {
    "symmetry": "I", "starts": 2, "models": 2, "junk_classes": 1, "fluence": "estimate", "sentinels": 0.2,
    "oversampling": 2.0,
}  # fmt: skip


def bytes_of(state: Any) -> dict[str, Any]:
    return {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in state.items()}


def all_states(emc: Emc) -> list[dict[str, Any]]:
    states = [emc.state()]
    while not emc.finished:
        emc.step()
        states.append(emc.state())
    return states


@pytest.mark.parametrize(
    "changes", [{}, {"likelihood": "gaussian"}, {"background": "estimate", "junk_classes": 0}]
)
def test_going_on_from_any_iteration_gives_the_same_bits(tiny: Any, changes: dict[str, Any]) -> None:
    settings = EVERYTHING | changes
    states = all_states(tiny.emc(**settings))
    passed = [(state["course/start"], state["course/stage"]) for state in states]
    assert {(0, 0), (1, 0)} < set(passed)  # both starts and a later stage
    other = tiny.emc(**settings)
    for k, (before, after) in enumerate(pairwise(states)):
        # Around every change of the start or of the stage, and here and there between them.
        if k % 15 and len(set(passed[max(0, k - 1) : k + 2])) == 1:
            continue
        other.restore(before)
        assert bytes_of(other.state()) == bytes_of(before)
        other.step()
        assert bytes_of(other.state()) == bytes_of(after)


def test_the_start_that_goes_on_is_told(tiny: Any) -> None:
    emc = tiny.emc(symmetry="I", starts=2)
    steps = [emc.step()]
    while steps[-1].stage == 1 and not emc.course.stage:
        steps.append(emc.step())
    last = {step.start: step.log_likelihood for step in steps}
    best = max(last, key=lambda start: last[start])
    assert emc.course.start == best - 1
    assert steps[-1].note.startswith(f"Start {best} of 2 goes on: its log-likelihood is {last[best]:.1f} ")
    assert not any(step.note for step in steps[:-1])


def test_halves_claim_no_agreement_before_they_have_settled(tiny: Any) -> None:
    """They begin with the same random model, so that at first they agree whatever they show."""
    emc = tiny.emc(symmetry="I")
    steps = [emc.step()]
    while steps[-1].stage == 1:
        steps.append(emc.step())
    assert steps[0].half_correlation > 0.5
    assert all(step.agrees_to_A is None for step in steps[:-1])
    assert steps[-1].agrees_to_A is not None


def test_another_seed_is_another_start(tiny: Any) -> None:
    first, again, other = (tiny.emc(seed=seed, symmetry="I") for seed in (1, 1, 2))
    assert np.array_equal(first.models, again.models)
    assert not np.allclose(first.models, other.models, atol=0.05)


def test_the_truth_is_never_read(tiny: Any) -> None:
    wrong = {
        name: np.full_like(values, 7) if name.startswith("truth_") else values
        for name, values in tiny.patterns.columns.items()
    }
    assert "truth_orientation" in wrong
    without = {name: values for name, values in wrong.items() if not name.startswith("truth_")}
    results = []
    for columns in (tiny.patterns.columns, wrong, without):
        settings = EmcSettings(symmetry="I", iterations=3, diameter_A=200)
        emc = Emc(tiny.source(columns=columns), settings, device="cpu")
        results.append(bytes_of(all_states(emc)[-1]))
    assert results[0] == results[1] == results[2]


def test_no_frame_meets_a_model_that_it_was_merged_into(tiny: Any) -> None:
    """Frames of one half, changed, leave the model of the other half of the next iteration as it was."""
    settings = EmcSettings(symmetry="I", diameter_A=200, fluence="constant", likelihood="poisson")
    before = Emc(tiny.source(), settings, device="cpu")
    counts = np.array(tiny.patterns.dense())
    changed = before.half == 0
    assert 10 < changed.sum() < 70
    counts[changed] = counts[changed][:, ::-1]
    after = Emc(tiny.source(frames=counts), settings, device="cpu")
    for emc in (before, after):
        # The same temperature for both: it is set by a few frames of either half.
        emc.annealing.inverse_temperature = lambda *_: 0.5  # type: ignore[method-assign]
    after.profile, after.work = before.profile, type(after.work)(after, after.stages[0])
    after.work.pixel_weights, after.work.pixel_model = before.work.pixel_weights, before.work.pixel_model
    likelihood = before.noise.likelihood(before.work)
    sums = [
        [emc.orient_and_merge(half, likelihood, 0.5).sums[0].finish() for half in (0, 1)]
        for emc in (before, after)
    ]
    assert np.array_equal(sums[0][1], sums[1][1])
    assert not np.array_equal(sums[0][0], sums[1][0])
    merged = before.table.merged
    assert np.array_equal(merged, ~before.sentinel)  # every frame once, sentinels never


def test_each_half_is_oriented_by_the_model_of_the_other(tiny: Any, merge_whole_frames: Any) -> None:
    emc = tiny.emc(symmetry="I", fluence="constant", likelihood="poisson")
    merge_whole_frames(emc)
    likelihood = emc.noise.likelihood(emc.work)

    def merged() -> list[Any]:
        return [emc.orient_and_merge(half, likelihood, 0.5).sums[0].finish() for half in (0, 1)]

    before = merged()
    emc.models = np.stack([emc.models[0][..., ::-1], emc.models[1]])
    after = merged()
    assert np.array_equal(before[0], after[0])
    assert not np.array_equal(before[1], after[1])


def test_sentinels_leave_no_photon_in_the_model(tiny: Any, merge_whole_frames: Any) -> None:
    emc = tiny.emc(symmetry="I", sentinels=0.3, fluence="constant", reject_junk=False)
    counts = np.array(tiny.patterns.dense())
    assert emc.sentinel.sum() > 5
    step = emc.step()
    assert step.photons_merged == counts[~emc.sentinel].sum()
    # Half of the merged photons lie at -q, and all of them on voxels that the pixels can reach.
    merge_whole_frames(emc)
    deposits = [emc.orient_and_merge(half, emc.noise.likelihood(emc.work), 1.0) for half in (0, 1)]
    photons = sum(float(deposit.sums[0].finish()[..., 0].sum()) for deposit in deposits)
    assert photons == pytest.approx(counts[~emc.sentinel].sum(), rel=1e-4)


def test_the_result_does_not_depend_on_the_order_of_frames(tiny: Any) -> None:
    """Halves and sentinels belong to events, not to places in a file."""
    order = np.random.default_rng(0).permutation(len(tiny.patterns))
    moved = tiny.source(
        frames=np.array(tiny.patterns.dense())[order],
        event_id=tiny.patterns.event_id[order],
        columns={name: values[order] for name, values in tiny.patterns.columns.items()},
    )
    first = tiny.emc(symmetry="I")
    second = Emc(moved, first.settings, seed=1, device="cpu")
    assert np.array_equal(second.half, first.half[order])
    assert np.array_equal(second.sentinel, first.sentinel[order])


_PROGRAM = """
import sys, numba, numpy as np
numba.set_num_threads(int(sys.argv[2]))
import orienteer
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
settings = EmcSettings(diameter_A=200, iterations=2, level=3)
emc = Emc(orienteer.open(sys.argv[1]), settings, seed=1, device="cpu")
while not emc.finished:
    emc.step()
state = {name: np.asarray(value) for name, value in emc.state().items() if name != "junk"}
np.savez(sys.argv[3], **{name.replace("/", "-"): value for name, value in state.items()})
"""


def test_one_thread_and_two_give_the_same(tiny: Any, tmp_path: Path) -> None:
    """To the bit where loops of ours share out work; matrix products of OpenBLAS round as its threads do."""
    path = tmp_path / "frames.h5"
    with orienteer.writer_for(path, like=tiny.source()) as writer:
        writer.append(tiny.patterns)

    def state_with(threads: int, blas_threads: int) -> dict[str, Any]:
        file = tmp_path / f"{threads}-{blas_threads}.npz"
        environment = os.environ | {
            name: str(blas_threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        }
        environment["NUMBA_NUM_THREADS"] = "2"
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, str(path), str(threads), str(file)],
            capture_output=True, text=True, check=True, env=environment,
        )  # fmt: skip
        with np.load(file, allow_pickle=True) as found:
            return dict(found)

    one, two, two_of_blas = state_with(1, 1), state_with(2, 1), state_with(1, 2)
    assert len(one) > 20
    for name, value in one.items():
        np.testing.assert_array_equal(two[name], value, err_msg=name)
    # The prior is taken off the whole: of two iterations, faint voxels are a small number over another.
    for name, tolerance in (("models", 1e-5), ("full", 1e-4)):
        difference = np.linalg.norm(two_of_blas[name] - one[name])
        assert difference <= tolerance * np.linalg.norm(one[name])
    closeness = np.abs((two_of_blas["frames-quaternion"] * one["frames-quaternion"]).sum(axis=1))
    assert np.degrees(2 * np.arccos(np.minimum(closeness, 1))).max() < 0.02


def test_a_run_that_goes_on_with_another_plan_says_so(tiny: Any) -> None:
    first, same, other = (tiny.emc(symmetry="I", level=2) for _ in range(3))
    first.step()
    told = len(first.remarks)
    other.plan = replace(other.plan, batch_frames=11)
    for emc in (same, other):
        emc.restore(first.state())
    assert len(same.remarks) == told
    assert "11 frames at a time" in other.remarks[-1]
    assert other.step().log_likelihood == pytest.approx(first.step().log_likelihood, rel=1e-4)


def test_how_far_frames_are_spread_decides_the_prior_and_empty_shots_have_no_say(tiny: Any) -> None:
    emc = tiny.emc(level=3)
    emc.step()
    table = emc.table
    for perplexity, prior in ((8.0, 0.02), (1000.0, 0.25)):
        table.perplexity[:] = perplexity
        table.weight[:] = 1.0
        assert emc.prior_photons == pytest.approx(prior)
        deposits = emc.oriented(range(2), emc.noise.likelihood(emc.work), 1.0)
        table.perplexity[:] = perplexity
        assert emc.solve(deposits).prior == pytest.approx(prior)
    table.perplexity[:] = 8.0
    is_empty = np.arange(len(table.weight)) % 5 == 0
    table.perplexity[is_empty], table.weight[is_empty] = 50_000.0, 0.0
    assert emc.prior_photons == pytest.approx(0.02)
