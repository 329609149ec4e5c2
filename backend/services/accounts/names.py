"""What an account may be called."""

from pydantic import TypeAdapter, ValidationError

from backend.errors import InvalidInput
from backend.schemas import Username

_USERNAME: TypeAdapter[str] = TypeAdapter(Username)


def check_name(name: str) -> None:
    """Refuse a name that is not one.

    Raises:
        InvalidInput: It says what a name is made of.
    """
    try:
        _USERNAME.validate_python(name)
    except ValidationError:
        raise InvalidInput(
            f"A name has up to 100 lower-case letters, digits and ._@+- and begins with a letter "
            f"or digit; got {name[:50]!r}.",
            field="username",
        ) from None
