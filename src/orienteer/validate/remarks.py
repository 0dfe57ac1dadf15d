"""Sentences that a reader of a claim must know."""

from orienteer.validate.coverage import Coverage

# Resolutions that differ by less than this factor count as the same.
COARSER = 1.15
# A sentence is due if a direction has less than this share of even coverage.
_THIN = 0.1
# If densities agree only to a resolution coarser by this factor than the intensities, phasing has failed.
_PHASING_FAILS = 1.5


def words_of_phasing(densities_A: float | None, speckles_A: float | None) -> list[str]:
    """A sentence if intensities agree much further than the densities that were phased from them.

    densities_A, speckles_A : full periods to which they agree; None: nowhere.
    """
    if speckles_A is None or (densities_A is not None and densities_A <= _PHASING_FAILS * speckles_A):
        return []
    how_far = "nowhere" if densities_A is None else f"only to {densities_A:.3g} A"
    return [
        f"The intensities of the halves agree to {speckles_A:.3g} A, but their densities {how_far}: "
        "phasing limits the claim, not the data."
    ]


def words_of_few_speckles(order: int) -> str:
    """A sentence where intensities are alike, but on so few speckles that this is no evidence.

    order : of the symmetry that both halves were given; speckles that it repeats count once.
    """
    why = f", of which a symmetry of order {order} leaves one in {order}" if order > 1 else ""
    return (
        f"A claim rests on speckles{why}, and these are too few: turning one intensity onto the other might "
        "make any two as alike. Finer data would tell: reconstruct with a smaller --resolution-A, if the "
        "detector reaches so far."
    )


def words_of_coverage(coverage: Coverage) -> list[str]:
    """A sentence about directions with few data, if there are any."""
    if coverage.largest_gap_deg <= coverage.cell_deg and coverage.worst_density >= _THIN:
        return []
    what = "Some directions have few data"
    if coverage.empty_share:
        what = f"{coverage.empty_share:.0%} of all directions have no data"
    x, y, z = coverage.worst_direction
    return [f"{what} at {1 / coverage.q_inv_A:.3g} A; least is known along ({x:.2f}, {y:.2f}, {z:.2f})."]
