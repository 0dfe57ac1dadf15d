"""What the dashboard does not do: a sentence for the person, and a status for the program."""

from orienteer.errors import OrienteerError


class Refused(OrienteerError):  # noqa: N818 - read as a statement
    """A request that is not carried out.

    status : of HTTP, such as 404 for what is not there and 409 for what cannot be done now.
    """

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
