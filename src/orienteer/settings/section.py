"""A section of settings: one class defines the TOML table, the command-line flags and the documentation."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from orienteer.settings.explaining import explain
from orienteer.settings.units import unit_meant


class Section(BaseModel):
    """Base of every settings section.  Fields have a type, a default and ``Field(description=...)``.

    The description is one line in plain words with the unit; it is the text of ``--help`` and of the
    documentation.  Instances are immutable, and a key that is not a field is an error.

    may_change : settings that affect results only by rounding, so a run may be resumed with other values.
    earlier_names : former names of settings, which files of older runs still have, and their present names.
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
        """Only settings that differ from the defaults."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value != field.get_default(call_default_factory=True):
                yield name, value

    def __str__(self) -> str:
        return repr(self)

    if not TYPE_CHECKING:  # the types of the arguments are those of the fields

        def __init__(self, **values: Any) -> None:
            """Settings by name; a wrong one raises a SettingsError that says what was probably meant."""
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise explain(error, type(self), {}, type(self).__name__) from None

        # Pydantic then checks nested sections together with the outer one instead of calling this __init__.
        __init__.__pydantic_base_init__ = True
