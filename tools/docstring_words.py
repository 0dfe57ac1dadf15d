"""Griffe extension: our docstrings write ``name : what it is``, and the types stand in the signature.

The numpydoc parser takes what follows the colon for a type; this puts it where a reader looks for it.
"""

from typing import Any

import griffe


class DocstringWords(griffe.Extension):
    """Moves the words after the colon from the type to the description."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each documented object once it is collected."""
        if obj.docstring is None:
            return
        obj.docstring.parser = griffe.Parser.numpy
        for section in obj.docstring.parsed:
            if section.kind in (
                griffe.DocstringSectionKind.parameters,
                griffe.DocstringSectionKind.attributes,
            ):
                for entry in section.value:
                    words = str(entry.annotation) if entry.annotation is not None else ""
                    entry.description = " ".join(part for part in (words, entry.description) if part)
                    entry.annotation = None
