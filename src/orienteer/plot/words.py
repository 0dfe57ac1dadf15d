"""Texts from outside, such as file names, made safe to draw."""


def plain_text(text: str) -> str:
    """The text with its dollar signs escaped, so that matplotlib does not read a formula.

    >>> plain_text("run$1.h5")
    'run\\\\$1.h5'
    """
    return text.replace("$", r"\$")
