"""Convert a Selection to plain arrays and back, so that hits can be judged after a restart."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.brightness_likeness import BrightnessLikeness
from orienteer.hits.fringe_likeness import FringeLikeness
from orienteer.hits.profile_likeness import ProfileLikeness
from orienteer.hits.selection import Selection
from orienteer.hits.size_likeness import SizeLikeness
from orienteer.hits.suspicion import Suspicion

_PROFILE = ("group", "profile", "covariance")
_FRINGE = ("noise", "slope", "mean", "covariance")
_SUSPICION = ("middle", "spread", "marks", "heights", "junk", "course")
# Numbers of the brightness test (middle and two spreads) and of the size test (diameter and first bin).
_NUMBERS = 5


def selection_state(selection: Selection) -> dict[str, NDArray[Any]]:
    """A selection as arrays."""
    state = {f"profile_{name}": np.array(getattr(selection.profile, name)) for name in _PROFILE}
    state |= {f"fringe_{name}": np.array(getattr(selection.fringe, name)) for name in _FRINGE}
    if selection.suspicion is not None:
        state |= {f"suspicion_{name}": np.array(getattr(selection.suspicion, name)) for name in _SUSPICION}
        state["suspicion_numbers"] = np.array([selection.suspicion.scatter, selection.suspicion.limit])
    brightness, size = selection.brightness, selection.size
    numbers = (brightness.middle, brightness.below, brightness.above, size.size_A, size.first)
    return state | {
        "size_density": size.density.copy(),
        "limits": selection.limits.copy(),
        "numbers": np.array(numbers),
    }


def selection_from_state(state: Mapping[str, NDArray[Any]]) -> Selection | None:
    """The selection in these arrays; None if they hold none, or one that an earlier version saved."""
    if len(state.get("numbers", ())) != _NUMBERS or "suspicion_numbers" not in state:
        return None
    profile = ProfileLikeness(*(np.array(state[f"profile_{name}"]) for name in _PROFILE))
    fringe = FringeLikeness(*(np.array(state[f"fringe_{name}"]) for name in _FRINGE))
    middle, below, above, size_A, first = (float(number) for number in state["numbers"])
    size = SizeLikeness(size_A, first, np.array(state["size_density"]))
    brightness = BrightnessLikeness(middle, below, above)
    known = {name: np.array(state[f"suspicion_{name}"]) for name in _SUSPICION}
    scatter, limit = (float(number) for number in state["suspicion_numbers"])
    suspicion = Suspicion(**known, scatter=scatter, limit=limit)
    return Selection(profile, fringe, size, brightness, np.array(state["limits"]), suspicion)
