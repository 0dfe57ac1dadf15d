"""The remark at the end of a run whose halves agree on hardly more than the size of the particle."""

from collections.abc import Mapping, Sequence
from typing import Any

from orienteer.phase.data import told_diameter_A
from orienteer.volume.volume import Volume

# Halves that agree only to a resolution coarser than this share of the diameter share just a blob.
_SHARE = 0.5


def coarse_agreement_in_words(
    step: Mapping[str, Any], section: Mapping[str, Any], volumes: Sequence[Volume]
) -> str:
    """One sentence if the halves agree only to more than half the diameter; empty if they agree further.

    step : the last one of a finished run.
    section : the settings of its method.
    volumes : its intensities, which may hold the diameter if the settings do not.

    >>> coarse_agreement_in_words({"agrees_to_A": 421.0}, {"diameter_A": 300}, ())  # doctest: +ELLIPSIS
    'The halves agree only to 421 A, of a particle of 300 A: no structure of it has been found. ...'
    >>> coarse_agreement_in_words({"agrees_to_A": 30.0}, {"diameter_A": 300}, ())
    ''
    """
    agrees_to_A = step.get("agrees_to_A")
    diameter_A = section.get("diameter_A") or max(map(told_diameter_A, volumes), default=0.0)
    if not isinstance(agrees_to_A, (int, float)) or not isinstance(diameter_A, (int, float)):
        return ""
    if diameter_A <= 0 or agrees_to_A <= _SHARE * diameter_A:
        return ""
    return (
        f"The halves agree only to {agrees_to_A:.3g} A, of a particle of {diameter_A:.3g} A: no structure of "
        "it has been found. Check geometry and wavelength; if right, use more frames or another --seed."
    )
