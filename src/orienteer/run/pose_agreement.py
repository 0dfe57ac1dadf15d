"""When the angle between the poses that two halves give to the same frames is meaningful."""

# A frame that is spread over a larger share of all poses has no pose yet: two models without structure give
# it similar poses, which would look like agreement.
_LARGEST_SPREAD = 0.03
_FIRST_ITERATION = 2


def pose_agreement_deg(
    agreement_deg: float | None, iteration: int, perplexity: float | None, n_rotations: int
) -> float | None:
    """The angle if it may be shown; None while frames are still spread over many poses.

    agreement_deg : median angle between the poses that the halves give to frames that neither has seen.
    perplexity : number of poses that a frame is spread over, out of ``n_rotations``.

    >>> pose_agreement_deg(4.0, 5, 20.0, 25_680), pose_agreement_deg(4.0, 5, 5000.0, 25_680)
    (4.0, None)
    """
    if agreement_deg is None or perplexity is None or iteration < _FIRST_ITERATION:
        return None
    return agreement_deg if perplexity <= max(1.0, _LARGEST_SPREAD * n_rotations) else None
