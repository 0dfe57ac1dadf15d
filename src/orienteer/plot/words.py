"""Texts from outside, such as file names, made safe to draw."""


def plain_text(text: str) -> str:
    """The text with its dollar signs taken as they are, not as the start of a formula.

    >>> plain_text("run$1.h5")
    'run\\\\$1.h5'
    """
    return text.replace("$", r"\$")
