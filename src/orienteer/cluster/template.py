"""Templates of job scripts: text with {{words}} that are filled in.

A line with a word that has no value is left out, so that one template serves all jobs, whichever options they
use.  An unknown word is an error: otherwise it would reach the cluster unreplaced.
"""

import difflib
import re
from collections.abc import Mapping

from orienteer.errors import FileError

_WORD = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def words_of(text: str) -> list[tuple[int, str]]:
    """Every {{word}} of a template with the number of its line, counted from 1."""
    return [
        (number, word) for number, line in enumerate(text.splitlines(), 1) for word in _WORD.findall(line)
    ]


def check_words(text: str, known: Mapping[str, str], needed: tuple[str, ...], path: str) -> None:
    """Refuse unknown words, and a template without the needed ones."""
    for number, word in words_of(text):
        if word not in known:
            close = difflib.get_close_matches(word, known, n=1)
            hint = f"Did you mean {{{{{close[0]}}}}}?" if close else f"Known words: {', '.join(known)}."
            raise FileError(path, f"line {number} has an unknown word {{{{{word}}}}}.", hint)
    found = {word for _, word in words_of(text)}
    for word in needed:
        if word not in found:
            raise FileError(
                path, f"lacks {{{{{word}}}}}, which every job needs.", f"Add it: it stands for {known[word]}."
            )


def fill(text: str, values: Mapping[str, str]) -> str:
    """The template with its words filled in; lines with an empty word are left out.

    >>> fill("#SBATCH --nodes={{nodes}}\\n#SBATCH --qos={{qos}}\\n", {"nodes": "4", "qos": ""})
    '#SBATCH --nodes=4\\n'
    """
    lines = []
    for line in text.splitlines():
        if all(values[word] for word in _WORD.findall(line)):
            lines.append(_WORD.sub(lambda match: values[match[1]], line))
    return "\n".join(lines) + "\n"
