"""The errors a user may see: one clear sentence, and what to do next.

Everything that can go wrong because of the outside world (a file, a setting, a machine) is raised as an
:class:`OrienteerError`.  The command line prints its message and hint and no traceback; any other
exception is a defect of Orienteer.
"""

from os import PathLike, fspath


class OrienteerError(Exception):
    """Something that the user can fix.

    Parameters
    ----------
    message : one sentence that says what is wrong, with the values that show it.
    hint : what to do next; empty when nothing useful can be said.

    >>> import orienteer
    >>> try:
    ...     orienteer.open("frames.h6")
    ... except orienteer.OrienteerError as error:
    ...     print(error)
    frames.h6: does not exist.
    Check the path.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class FileError(OrienteerError):
    """A file that cannot be read or written: the message names the file and the reason."""

    def __init__(self, path: str | PathLike[str], reason: str, hint: str = "") -> None:
        super().__init__(f"{fspath(path)}: {reason}", hint)
        self.path = fspath(path)
        self.reason = reason

    def __reduce__(self) -> tuple[type["FileError"], tuple[str, str, str]]:
        """Errors are pickled to travel between ranks: rebuild this one from its constructor's arguments."""
        return FileError, (self.path, self.reason, self.hint)


class SettingsError(OrienteerError):
    """A setting that is unknown, mistyped or out of range."""


class GeometryMismatch(OrienteerError):  # noqa: N818 - users read it as a statement
    """Frames and detector do not describe the same pixels."""


class DeviceError(OrienteerError):
    """The requested device is not available or cannot do the work."""


def reason_of(error: BaseException) -> str:
    """An error in one sentence, for a log: the message of an OrienteerError, or type and text of any other.

    >>> reason_of(OrienteerError("the disk is full.", "Make room.")), reason_of(ValueError("shape"))
    ('the disk is full.', 'ValueError: shape')
    """
    return error.message if isinstance(error, OrienteerError) else f"{type(error).__name__}: {error}"
