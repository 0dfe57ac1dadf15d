"""``--help`` is a flag: Typer would show it as an option that takes a value."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _PlainHelp:
    def get_help_option(self, ctx: Any) -> Any:
        """The option, without a word for a value that it does not take."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class Command(_PlainHelp, TyperCommand):
    """A command whose help shows ``--help`` as the flag that it is."""


class Group(_PlainHelp, TyperGroup):
    """Commands below one name, likewise."""
