"""What a user meets first: few names, each with an example that runs, a repr that tells, and a picture."""

import doctest
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.errors import OrienteerError

NOUNS = sorted(
    name for name in set(orienteer.__all__) - {"Source"} if isinstance(getattr(orienteer, name), type)
)


def test_there_are_no_more_than_thirty_names() -> None:
    assert len(orienteer.__all__) == len(set(orienteer.__all__)) <= 30


@pytest.mark.parametrize("name", sorted(set(orienteer.__all__) - {"__version__"}))
def test_every_name_has_an_example_that_is_tested(name: str) -> None:
    """Examples of docstrings run with the tests (``--doctest-modules``); a skipped one would not."""
    thing = getattr(orienteer, name)
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")
    assert any(example.want for example in examples), f"{name} shows no example with its result"
    assert not any(doctest.SKIP in example.options for example in examples)


@pytest.mark.parametrize("name", NOUNS)
def test_every_noun_tells_what_it_is_in_its_repr(name: str) -> None:
    assert getattr(orienteer, name).__repr__ is not object.__repr__


def test_settings_show_only_what_was_set() -> None:
    assert repr(orienteer.EmcSettings()) == "EmcSettings()"
    chosen = orienteer.EmcSettings(symmetry="I", resolution_A=20)
    assert repr(chosen) == "EmcSettings(symmetry='I', resolution_A=20.0)"
    assert eval(repr(chosen), {"EmcSettings": orienteer.EmcSettings}) == chosen


def test_functions_that_compute_take_what_they_work_on_first_then_settings_then_seed_and_device() -> None:
    for name in ("simulate", "phase_intensity", "validate_run"):
        parameters = inspect.signature(getattr(orienteer, name)).parameters
        names = list(parameters)
        assert names.index("settings") < names.index("device")
        assert parameters["device"].kind is inspect.Parameter.KEYWORD_ONLY
        if "seed" in names:
            assert names.index("settings") < names.index("seed") < names.index("device")
    for name in ("open_detector", "open_structure", "open_volume", "write_volume", "writer_for"):
        assert next(iter(inspect.signature(getattr(orienteer, name)).parameters)) == "path"


def test_everything_that_can_be_seen_has_show(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    detector = orienteer.square_detector(8, 1e-3, 0.1)
    frames = np.random.default_rng(0).poisson(1.0, (5, 64))
    source = orienteer.open(frames, detector, wavelength_A=2.0)
    volume = orienteer.Volume(np.random.default_rng(0).random((6, 6, 6)), voxel_size=2.0)
    for thing in (detector, source, volume):
        figure: Any = thing.show()
        assert isinstance(figure, Figure)
        figure.savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 1000
    for name in ("Run", "Phasing"):
        assert callable(getattr(orienteer, name).show)
    assert "2 Å" in orienteer.show(detector, wavelength_A=2.0).get_suptitle()


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(OrienteerError, match="there is no picture of dict"):
        orienteer.show({})
