"""A section of settings: one class is the TOML table, the command-line flags and the documentation."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from orienteer.settings.explaining import explain
from orienteer.settings.units import unit_meant


class Section(BaseModel):
    """Base of every settings section.  Fields have a type, a default and ``Field(description=...)``.

    The description is one line in plain words with the unit; it is the text of ``--help`` and of the
    documentation.  Instances are immutable, and a key that is not a field is an error.

    may_change : settings that change no result but for rounding, so that a run may be resumed with others.
    earlier_names : names that settings had, and have in the files of runs begun then, with those of today.
    """

    may_change: ClassVar[frozenset[str]] = frozenset()
    earlier_names: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, arbitrary_types_allowed=False
    )

    @field_validator("*")
    @classmethod
    def _is_in_its_unit(cls, value: Any, info: ValidationInfo) -> Any:
        if unit_meant(info.field_name or "", value):
            raise ValueError("this cannot be in the unit that the name ends with")
        return value

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Only what is not as by default."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value != field.get_default(call_default_factory=True):
                yield name, value

    def __str__(self) -> str:
        return repr(self)

    if not TYPE_CHECKING:  # the types of the arguments are those of the fields

        def __init__(self, **values: Any) -> None:
            """Settings by name; what is wrong is a SettingsError that says what was meant."""
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise explain(error, type(self), {}, type(self).__name__) from None

        # Sections inside of others are then checked together with them, and not one by one.
        __init__.__pydantic_base_init__ = True
