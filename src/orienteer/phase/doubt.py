"""Which remarks of a phasing put its density in doubt; files and reports keep remarks as sentences."""

# These words stand in such remarks, and in no others.
UNSEEN_AMPLITUDES = "amplitudes that phasing had not seen"


def is_doubt(remark: str) -> bool:
    """Whether a remark says that the density does not predict what it was not phased from.

    >>> is_doubt("Amplitudes that phasing had not seen are predicted no better than by the mean.")
    True
    """
    return UNSEEN_AMPLITUDES in remark.lower()
