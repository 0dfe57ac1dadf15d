"""Refused requests: a sentence for people, and an HTTP status for programs."""

from orienteer.errors import OrienteerError


class Refused(OrienteerError):  # noqa: N818 - read as a statement
    """A request that is not carried out.

    status : of HTTP, such as 404 for something missing and 409 for something that cannot be done now.
    """

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
