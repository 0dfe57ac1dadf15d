"""How far the density of the run agrees with those of its halves, which a claim is about.

Phasing may fail for the run although it succeeded for both halves, even if all intensities agree.  So the
density of the run is aligned with that of each half, and compared as these two are with each other, with the
same correction for mask and supports.  It shares frames with each of them, so the threshold is 0.5, as for a
known structure, and not 0.143.

The half that agrees better counts.  If the halves agree with each other, either could be taken; if phasing
has failed for one of them, that does not count against the run.

A density of the run that is better than those of its halves, which have half the frames, agrees with each of
them more than they do with each other.  So it is doubted only at resolutions at which the halves agree well,
by 0.7: noise does not bring it below 0.5 there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.plain_json import plain
from orienteer.validate.remarks import COARSER

if TYPE_CHECKING:
    from orienteer.validate.half_maps import HalfMaps

CRITERION = "0.5"
# Whether a claim about the halves holds for a density of the run.
Verdict = Literal["holds", "holds to its end", "does not hold"]
# Fourier shell correlation of halves that agree well.
_WELL = 0.7


@dataclass(frozen=True, eq=False)
class DensityAgreement:
    """The density of the run beside that of a half, the one that agrees better.

    half : 1 or 2.
    q_inv_A, correlation : (S,) Fourier shell correlation up to the edge of the data, corrected for the mask.
    agrees_to_A : full period at which it falls below 0.5; None: nowhere above.
    reaches_edge : whether it never does, up to the edge of the data or of one of the densities.
    """

    half: int
    q_inv_A: NDArray[np.float64]
    correlation: NDArray[np.float64]
    agrees_to_A: float | None
    reaches_edge: bool

    @classmethod
    def of(cls, half: int, maps: HalfMaps) -> DensityAgreement:
        """From the comparison of the density of the run with that of a half."""
        curve, found = maps.curves.corrected, maps.resolutions[CRITERION]
        return cls(half, curve.q_inv_A, curve.correlation, found.resolution_A, found.reaches_edge)

    def verdict(self, maps: HalfMaps | None, claim_A: float | None, whole_A: float | None) -> Verdict | None:
        """Whether a claim holds for this density; None if there is no claim, or nothing to tell it by.

        A density need agree no further than the intensity, of which the claim tells, or than halves agree
        well.

        maps : of the two halves; claim_A, whole_A : full periods of the claim about them, and to which the
            intensity of the run agrees with theirs.
        """
        halves_A = None if maps is None else maps.agrees_to_A(_WELL)
        if halves_A is None or claim_A is None or whole_A is None:
            return None
        if self.agrees_to_A is None:
            return "does not hold"
        if self.agrees_to_A <= COARSER * max(claim_A, whole_A, halves_A):
            return "holds"
        return "holds to its end" if self.reaches_edge else "does not hold"

    def describe(self) -> dict[str, Any]:
        """The entries of ``validation.json``."""
        return {**plain(self), "criterion": CRITERION}


def words_of_density(
    density: DensityAgreement | None, maps: HalfMaps | None, claim_A: float | None, whole_A: float | None,
    state: int = 0,
) -> str:  # fmt: skip
    """A sentence if a claim does not hold for the density of the run; empty if it does, or if not compared.

    maps, claim_A, whole_A : as in :meth:`DensityAgreement.verdict`.
    state : counted from 1, if there are several.
    """
    verdict = None if density is None else density.verdict(maps, claim_A, whole_A)
    if density is None or verdict in (None, "holds"):
        return ""
    found_A, which = density.agrees_to_A, f"state {state}" if state else "the run"
    if verdict == "holds to its end":
        return f"The claim holds for the density of {which} only to {found_A:.3g} A, where that ends."
    where = "nowhere" if found_A is None else f"only to {found_A:.3g} A"
    options = f"--model {state} --restart" if state > 1 else "--restart"
    return (
        f"The claim does not hold for the density of {which}, which agrees with those of its halves {where}: "
        f"phase the run again (phase {options}, with another --seed or more --starts), then validate it "
        "again."
    )
