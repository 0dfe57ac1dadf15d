"""Typer with small changes: help shows ``--help`` as a flag, and errors name a setting of the same name.

Help names the values of options as it names those of settings: NUMBER and INTEGER, not Python's types.
"""

from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from typer.core import TyperCommand, TyperGroup, TyperOption

from orienteer.cli.console import UsageError

_VALUES = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "FILE"}


class _PlainHelp:
    def get_help_option(self, ctx: Any) -> Any:
        """The option without a placeholder for a value, because it takes none."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class Command(_PlainHelp, TyperCommand):
    """A command whose help shows ``--help`` as a plain flag, and whose errors suggest ``--set``."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        hints = get_type_hints(self.callback, include_extras=True) if self.callback else {}
        for option in self.params:
            if isinstance(option, TyperOption) and option.metavar is None:
                option.metavar = _value_in_words(hints.get(str(option.name)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does; if an unknown option is a setting, the error says how to set it."""
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            error.message = str(error.message).removeprefix("Value error, ")
            takes_settings = any("--set" in parameter.opts for parameter in self.params)
            if takes_settings and (meant := settings_named(getattr(error, "option_name", None) or "")):
                ways = " or ".join(f"--set {setting}=VALUE" for setting in meant)
                error.message += f"; commands that read this setting take {ways}"
                error.possibilities = None  # Typer's guesses are only options with a similar spelling
            raise


class Group(_PlainHelp, TyperGroup):
    """A group of commands with the same plain help."""


def _value_in_words(hint: Any) -> str | None:
    """The name of the value of an option in help; None if Typer lists its choices.

    >>> _value_in_words(Annotated[float | None, "an option"]), _value_in_words(list[str])
    ('NUMBER', 'TEXT')
    """
    if get_origin(hint) in (Annotated, Union, UnionType, list):
        inner = [kind for kind in get_args(hint) if kind is not type(None)]
        return _value_in_words(inner[0])
    return _VALUES.get(hint)


def settings_named(option: str) -> list[str]:
    """The settings of all sections that have the name of an option.

    >>> settings_named("--photon-energy-eV"), settings_named("--no-such")
    (['beam.photon_energy_eV'], [])
    """
    from orienteer.run.settings import Settings

    key = option.lstrip("-").replace("-", "_")
    sections: dict[str, Any] = {name: field.annotation for name, field in Settings.model_fields.items()}
    return [f"{name}.{key}" for name, section in sections.items() if key in section.model_fields]
