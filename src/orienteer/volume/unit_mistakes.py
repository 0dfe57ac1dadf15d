"""Why two sizes that should agree differ: usually one is in nm or 1/nm instead of A or 1/A."""

import math

# The likely mistake by the factor between two sizes, which must agree to a factor of two.
_MISTAKES = {
    10.0: "Is one of them in nm or 1/nm? All sizes are in A and 1/A.",
    1e3: "Is the voxel size right? In an MRC header of an intensity, 1 A stands for 0.001 1/A.",
    1e10: "Is one of them in m or 1/m? All sizes are in A and 1/A.",
}


def unit_mistake(one_A: float, other_A: float) -> str:
    """The likely mistake, from the factor between two sizes; empty if none is known.

    >>> unit_mistake(30.0, 330.0)
    'Is one of them in nm or 1/nm? All sizes are in A and 1/A.'
    >>> unit_mistake(300.0, 330.0)
    ''
    """
    if one_A <= 0 or other_A <= 0:
        return ""
    decades = abs(math.log10(one_A / other_A))
    near = [words for factor, words in _MISTAKES.items() if abs(decades - math.log10(factor)) < math.log10(2)]
    return near[0] if near else ""
