"""All settings as rows for ``--help``, the documentation and a commented example file."""

import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic_core import PydanticUndefined

from orienteer.settings.section import Section


@dataclass(frozen=True)
class SettingRow:
    """One setting in words."""

    section: str
    key: str
    type: str
    default: str
    description: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that may be written in TOML, if they are restricted; otherwise empty.

        >>> SettingRow("beam", "polarisation", "x | y", '"x"', "").choices
        ('"x"', '"y"')
        >>> SettingRow("emc", "models", "integer or auto", "1", "").choices
        ('an integer', '"auto"')
        >>> SettingRow("phase", "positivity", "true or false", "true", "").choices
        ()
        """
        if " | " in self.type:
            return tuple(f'"{word}"' for word in self.type.split(" | "))
        kind, _, word = self.type.partition(" or ")
        return (f"an {kind}", f'"{word}"') if kind == "integer" and word else ()


def describe_section(name: str, section: type[Section]) -> list[SettingRow]:
    """One row per field, in the order in which the class defines them."""
    return [
        SettingRow(
            name,
            key,
            type_in_words(field.annotation),
            _default(field.get_default(call_default_factory=True)),
            field.description or "",
        )
        for key, field in section.model_fields.items()
    ]


def describe_settings(sections: type[Section]) -> list[SettingRow]:
    """The rows of every section of a settings class."""
    rows: list[SettingRow] = []
    for name, field in sections.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            rows += describe_section(name, field.annotation)
    return rows


def example_toml(rows: Iterable[SettingRow]) -> str:
    """Every setting with its default, commented out, as a file to start from."""
    lines: list[str] = []
    section = None
    for row in rows:
        if row.section != section:
            section = row.section
            lines += ["", f"[{section}]"]
        lines.append(f"# {row.description}")
        if row.choices:
            lines.append(f"# One of: {', '.join(row.choices)}.")
        lines.append(f"# {row.key} = {row.default or '...'}")
    return "\n".join(lines).strip() + "\n"


def type_in_words(annotation: Any) -> str:
    """A type in words that a scientist would use.

    >>> type_in_words(int | None), type_in_words(Literal["x", "y"]), type_in_words(tuple[float, ...])
    ('integer', 'x | y', 'list of numbers')
    >>> type_in_words(Annotated[int, "more than 0"] | Literal["auto"])
    'integer or auto'
    """
    words = {int: "integer", float: "number", str: "text", bool: "true or false", Path: "path"}
    if annotation in words:
        return words[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_in_words(arguments[0])
    if origin is Literal:
        return " | ".join(str(choice) for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_in_words(a) for a in arguments if a is not type(None)))
    if origin in (tuple, list):
        inner = dict.fromkeys(type_in_words(a) for a in arguments if a is not Ellipsis)
        return "list of " + " or ".join(f"{word}s" if " " not in word else word for word in inner)
    return getattr(annotation, "__name__", str(annotation))


def _default(value: Any) -> str:
    """The default as it would be written in TOML; empty when there is none."""
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, Path)):
        return f'"{value}"'
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_default(v) for v in value) + "]"
    return str(value)
