"""A section of settings: one class is the TOML table, the command-line flags and the documentation."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of every settings section.  Fields have a type, a default and ``Field(description=...)``.

    The description is one line in plain words with the unit; it is the text of ``--help`` and of the
    documentation.  Instances are immutable, and a key that is not a field is an error.

    may_change : settings that change no result, so that a run may be resumed with others.
    """

    may_change: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, arbitrary_types_allowed=False
    )
