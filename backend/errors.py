"""What the service refuses, and with which status. No web framework here: services raise these."""

from ib_core.errors import IBError


class NotFound(IBError):
    """An id that does not exist, or not for this caller."""

    code = "not_found"

    def __init__(self, kind: str, given: object, *, field: str | None = None) -> None:
        super().__init__(f"There is no {kind} {given}.", field=field)


class Conflict(IBError):
    """A request that is sound in itself but not in the present state."""

    code = "conflict"


class TooLarge(IBError):
    """More than the service takes in one request; the message names the limit."""

    code = "too_large"


class Forbidden(IBError):
    """A request this caller may not make."""

    code = "forbidden"


class Unauthorized(IBError):
    """A request that needs a login or a token."""

    code = "unauthorized"


class TooManyAttempts(IBError):
    """A request that has to wait.

    Attributes:
        seconds: How long.
    """

    code = "too_many_attempts"

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class BadRequest(IBError):
    """A request that cannot be read at all."""

    code = "bad_request"


class InvalidInput(IBError):
    """A request that can be read, but asks for something that does not exist or cannot be."""

    code = "invalid_input"


class Unavailable(IBError):
    """A part the service needs is away; trying again later may work."""

    code = "unavailable"


#: The first class an error is an instance of decides; any other `IBError` is about the input: 422.
STATUSES: dict[type[IBError], int] = {
    BadRequest: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    TooManyAttempts: 429,
    Unavailable: 503,
}


def status_of(error: IBError) -> int:
    """Return the HTTP status of a domain error."""
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            return status
    return 422
