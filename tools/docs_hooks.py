"""MkDocs hooks: what the program says of itself goes into the pages, so that they cannot disagree.

``<!-- help: NAME -->`` becomes the ``--help`` text of a command, ``<!-- settings -->`` the settings tables.
"""

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page before it is rendered."""
    markdown = re.sub(r"<!-- help: ?([\w ]*?) -->", lambda match: help_text(match[1]), markdown)
    return markdown.replace("<!-- settings -->", settings_tables())


def help_text(command: str) -> str:
    """The help of one command (or of ``orienteer`` itself) as a code block."""
    from typer.testing import CliRunner

    from orienteer.cli.main import app

    arguments = [*command.split(), "--help"]
    plain = CliRunner(env={"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"})
    result = plain.invoke(app, arguments, prog_name="orienteer")
    if result.exit_code != 0:
        raise ValueError(f"there is no command '{command}'")
    return f"```text\n$ orienteer {' '.join(arguments)}\n{result.output.strip()}\n```"


def settings_tables() -> str:
    """One table per section."""
    from orienteer.run.settings import Settings
    from orienteer.settings.describing import describe_settings

    lines: list[str] = []
    section = None
    for row in describe_settings(Settings):
        if row.section != section:
            section = row.section
            lines += ["", f"## [{section}]", "", "| key | type | default | meaning |", "|---|---|---|---|"]
        cells = (f"`{row.key}`", row.type, f"`{row.default}`" if row.default else "", row.description)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
