"""How fast posteriors become narrower."""

from typing import Any

import numpy as np
import pytest

from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.orienting.temperature import LAST_PERPLEXITY, Annealing


def next_share(annealing: Annealing, tiny_emc: Any) -> float:
    """What an iteration leaves of the target."""
    before = annealing.target
    emc = tiny_emc
    likelihood = emc.noise.likelihood(emc.work)
    annealing.inverse_temperature(emc.work, likelihood, emc.models, emc.fluence, emc.table.weight)
    return annealing.target / before


def test_it_narrows_slowly_while_the_halves_come_to_agree_and_quickly_when_nothing_is_learnt(
    tiny: Any,
) -> None:
    emc = tiny.emc(level=4)
    annealing = Annealing(len(emc.work.poses), is_first=True, is_followed=True)
    assert annealing.target > 10 * LAST_PERPLEXITY
    slow = next_share(annealing, emc)
    annealing.follow(0.5)
    assert next_share(annealing, emc) == pytest.approx(slow)
    annealing.follow(0.502)  # as good as nothing
    quick = next_share(annealing, emc)
    assert quick < slow**1.5
    annealing.follow(0.6)
    assert next_share(annealing, emc) == pytest.approx(slow)
    annealing.follow(0.55)
    assert next_share(annealing, emc) == pytest.approx(quick)


def test_it_goes_on_as_it_was_and_older_checkpoints_go_on_slowly(tiny: Any) -> None:
    emc = tiny.emc(level=4)
    n_poses = len(emc.work.poses)
    one, other, older = (Annealing(n_poses, is_first=True, is_followed=True) for _ in range(3))
    one.follow(0.5)
    one.follow(0.5)
    state = one.state()
    other.restore(state)
    assert next_share(other, emc) == next_share(one, emc)
    newer = ("annealing/agreement", "annealing/rate")
    older.restore({key: value for key, value in state.items() if key not in newer})
    assert next_share(older, emc) > next_share(one, emc)


def test_a_run_tells_how_far_its_halves_agree(tiny: Any) -> None:
    emc = tiny.emc(level=3)
    assert emc.step().half_correlation == pytest.approx(emc.annealing.agreement)


@pytest.mark.parametrize("settings", [{"halves": False}, {"models": 2}])
def test_without_halves_and_with_several_states_it_stays_slow_and_more_iterations_are_left(
    tiny: Any, settings: dict[str, Any]
) -> None:
    quick, slow = tiny.emc(level=4), tiny.emc(level=4, **settings)
    assert slow.annealing.target == quick.annealing.target
    assert slow.annealing.iterations_left > 2 * quick.annealing.iterations_left
    for _ in range(3):
        slow.step()
    assert slow.annealing.rate == Annealing(100).rate


def test_a_bright_shot_of_something_else_has_no_say_in_the_temperature(simulated: Any) -> None:
    """It is among the frames that are scored to find the temperature, and has more nats than the others."""
    particle, other = random_blobs(200.0, 20, 5), random_blobs(330.0, 12, 9)
    data = simulated(particle, 14, 65.0, frames=80, photons_per_frame=3000.0, fluence_jitter=0.4)
    plain = data.emc(level=4)
    place = int(plain.work.frames_of(0)[10])
    frames = data.patterns.dense().astype(np.float32)
    junk = simulated(other, 14, 65.0, frames=1, photons_per_frame=3000.0).patterns.dense()[0]
    frames[place] = np.random.default_rng(0).poisson(300.0 * junk.astype(np.float64))
    dirty = Emc(data.source(frames=frames), plain.settings, seed=1, device="cpu")
    assert dirty.first_weight[place] == 0
    shown = np.arange(80) != place

    def perplexity(emc: Emc) -> float:
        """Of the frames of the particle, in the first iteration."""
        emc.models = plain.models.copy()
        emc.step()
        return emc.table.mean_perplexity(emc.table.merged & ~emc.sentinel & shown)

    assert perplexity(dirty) == pytest.approx(perplexity(plain), rel=0.1)
