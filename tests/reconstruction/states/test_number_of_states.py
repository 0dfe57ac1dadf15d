"""When one state more is in the data, and when it is not."""

from typing import Any

import numpy as np
import pytest

from orienteer.errors import SettingsError
from orienteer.reconstruction.settings import EmcSettings
from orienteer.reconstruction.states.number_of_states import Growth, HeldOut, ask_sentinels, most_models
from orienteer.reconstruction.workspace import Workspace

EVEN = np.array([0.5, 0.5])


def judged(gains: np.ndarray, losses: np.ndarray | None = None) -> Growth:
    """Growth after the likelihoods of the sentinels have changed so much with the second model.

    losses : without each of the models; by default half of the frames need each.
    """
    if losses is None:
        losses = np.where(np.arange(len(gains))[:, None] % 2 == np.arange(2), 20.0, 0.0)
    growth = Growth("auto", before={"evidence": np.zeros(len(gains))})
    growth.judge(HeldOut(gains, losses), EVEN)
    return growth


def test_a_gain_far_above_its_error_asks_for_more() -> None:
    gains = np.random.default_rng(1).normal(2.0, 4.0, 400)  # 2 +- 0.2
    assert judged(gains).verdict == "split"
    # A minority alone gains, and gains much.
    is_rare = np.arange(500) % 20 == 0
    losses = np.where(is_rare[:, None] == [False, True], 15.0, 0.0)
    assert judged(np.where(is_rare, 15.0, -0.1), losses).verdict == "split"


def test_a_state_that_a_third_of_few_sentinels_show_is_kept() -> None:
    rng = np.random.default_rng(4)
    shown = np.arange(27) % 3 == 0
    losses = np.where(shown[:, None] == [False, True], rng.uniform(1, 50, (27, 1)), -0.4)
    assert judged(np.where(shown, 200.0, 150.0), losses).verdict == "split"


@pytest.mark.parametrize("mean", [-1.0, 0.0, 0.3])
def test_a_gain_that_may_be_chance_is_taken_back(mean: float) -> None:
    gains = np.random.default_rng(2).normal(0.0, 4.0, 400)
    gains += mean - gains.mean()
    assert judged(gains).verdict == "take back"


def test_where_no_state_becomes_likelier_as_two_no_more_are_tried() -> None:
    gains = np.random.default_rng(1).normal(2.0, 4.0, 400)
    losses = np.where(np.arange(400)[:, None] % 2 == np.arange(2), 20.0, 0.0)
    growth = Growth("auto", before={"evidence": np.zeros(400)})
    assert "There are 2 states:" in growth.judge(HeldOut(gains, losses), EVEN, lambda: 0.0)
    assert growth.verdict == "keep"
    assert "2 states or more" in growth.judge(HeldOut(gains, losses), EVEN, lambda: 1.0)
    assert growth.verdict == "split"


def test_a_state_that_nobody_misses_is_taken_back() -> None:
    """Models may become better while one more begins, although it explains nothing."""
    gains = np.random.default_rng(3).normal(0.5, 1.0, 400)
    losses = np.stack([np.full(400, 30.0), np.full(400, 0.01)], axis=1)
    assert judged(gains).verdict == "split"
    assert judged(gains, losses).verdict == "take back"


def test_too_few_sentinels_decide_nothing() -> None:
    growth = Growth("auto")
    assert "too few" in growth.judge(HeldOut(np.zeros(5), np.zeros((5, 1))), np.ones(1))
    assert growth.verdict == "keep"


def test_a_given_number_is_reached_whatever_sentinels_say() -> None:
    growth = Growth(3)
    growth.judge(None, np.ones(1))
    assert growth.verdict == "split"
    growth.judge(None, EVEN)
    assert growth.verdict == "split"
    growth.judge(None, np.full(3, 1 / 3))
    assert growth.verdict == "keep"


def test_a_state_without_frames_begins_again_but_not_for_ever() -> None:
    growth = Growth(2)
    empty = np.array([1.0, 0.0])
    for n_tries in range(2):
        growth.n_tries = n_tries
        growth.judge(None, empty)
        assert growth.verdict == "begin again"
    growth.n_tries = 2
    growth.judge(None, empty)
    assert growth.verdict == "keep"


def test_growth_goes_on_from_its_state() -> None:
    growth = Growth("auto", "split", np.arange(4.0), {"evidence": np.ones(4), "junk": None}, 1)
    other = Growth("auto")
    other.restore(growth.state())
    assert other.state().keys() == growth.state().keys()
    assert (other.verdict, other.n_tries) == ("split", 1)
    assert np.array_equal(other.evidence, growth.evidence)
    assert np.array_equal(other.before["evidence"], np.ones(4))


def test_models_are_a_number_or_auto() -> None:
    assert most_models(EmcSettings(models=3)) == 3
    assert most_models(EmcSettings(models="auto")) > 2
    for wrong in (0, "many", -1):
        with pytest.raises(SettingsError, match="models"):
            EmcSettings(models=wrong)


def test_sentinels_are_likelier_with_the_model_of_their_particle(simulated: Any, tiny: Any) -> None:
    """In nats, whatever the temperature of the run: a round model explains them less well."""
    data = simulated(tiny.particle, 14, 65.0, frames=400, photons_per_frame=500)
    emc = data.emc(level=3, sentinels=0.2)
    for _ in range(12):
        emc.step()
    found = ask_sentinels(emc).evidence
    assert found.shape == (emc.sentinel.sum(),)
    emc.models = np.ones_like(emc.models)
    gains = found - ask_sentinels(emc).evidence
    assert gains.mean() > 3 * gains.std() / np.sqrt(len(gains))


@pytest.mark.parametrize("photons", [300, 30_000])
def test_a_model_that_is_there_twice_tells_no_more_and_a_wrong_one_takes_nothing_away(
    simulated: Any, tiny: Any, photons: float
) -> None:
    """Bright frames put thousands of nats between states: each must be asked by itself."""
    data = simulated(tiny.particle, 14, 65.0, frames=120, photons_per_frame=photons)
    emc = data.emc(level=3, sentinels=0.2)
    for _ in range(3):
        emc.step()
    alone = ask_sentinels(emc).evidence
    shares = np.array([0.6, 0.4])
    right, none = emc.models, np.ones_like(emc.models)
    for other, gain in ((right, 0.0), (none, np.log(0.6))):
        emc.models = np.concatenate([right, other], axis=1)
        emc.n_models = 2
        emc.table.take_states(2)
        emc.work.take_models(shares * len(emc.table.model))
        told = ask_sentinels(emc).evidence - alone
        assert np.median(told) == pytest.approx(gain, abs=0.02 if photons > 1000 or not gain else 0.5)


def test_what_sentinels_say_does_not_depend_on_how_frames_were_grouped(simulated: Any, tiny: Any) -> None:
    """Fluences that lie far apart within a group would make frames likelier than certain."""
    data = simulated(tiny.particle, 14, 65.0, frames=120, photons_per_frame=1000, fluence_jitter=1.0)
    emc = data.emc(level=3, sentinels=0.3, fluence="estimate")
    for _ in range(3):
        emc.step()
    told, fluence = ask_sentinels(emc).evidence, emc.fluence
    assert np.ptp(fluence) > 1
    emc.fluence = np.ones_like(fluence)
    emc.work = Workspace(emc, emc.work.stage)
    emc.fluence = fluence
    assert told.max() < 0
    assert ask_sentinels(emc).evidence == pytest.approx(told, abs=0.1)
