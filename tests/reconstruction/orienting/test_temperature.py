"""How fast posteriors become narrower."""

from typing import Any

import pytest

from orienteer.reconstruction.orienting.temperature import LAST_PERPLEXITY, Annealing


def next_share(annealing: Annealing, tiny_emc: Any) -> float:
    """What an iteration leaves of the target."""
    before = annealing.target
    emc = tiny_emc
    likelihood = emc.noise.likelihood(emc.work)
    annealing.inverse_temperature(emc.work, likelihood, emc.models, emc.fluence)
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
