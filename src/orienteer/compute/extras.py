"""How optional parts of Orienteer are installed; the page Install has the details."""

_WHERE = "in the folder of the sources"


def how_to_install(*extras: str) -> str:
    """The command that installs extras; without any, the one that installs Orienteer and what it needs.

    >>> how_to_install("files", "live")
    "pip install '.[files,live]' in the folder of the sources"
    >>> how_to_install()
    'pip install --upgrade . in the folder of the sources'
    """
    # Some shells take square brackets for a pattern.
    what = f"'.[{','.join(extras)}]'" if extras else "--upgrade ."
    return f"pip install {what} {_WHERE}"
