"""What settings are described with: their words, units and ranges."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict

KIB: Final = 1024
MIB: Final = 1024 * KIB


def _not_a_bool(value: object) -> object:
    # A bool is an int to Python: `port = true` would be port 1.
    if isinstance(value, bool):
        raise ValueError("a bool is no number")  # noqa: TRY004 (pydantic takes ValueError only)
    return value


Integer = Annotated[int, BeforeValidator(_not_a_bool)]


def setting(
    default: object,
    meaning: str,
    *,
    unit: str = "",
    ge: int | None = None,
    le: int | None = None,
    unset: str = "",
) -> Any:  # noqa: ANN401 (as pydantic's Field: it stands for a value of the field's type)
    """Describe a setting; `unset` says what the default None means."""
    words: JsonDict = {"unit": unit, "unset": unset}
    return Field(default, description=meaning, ge=ge, le=le, json_schema_extra=words)


class Section(BaseModel):
    """Settings that belong together: a table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)


class OutOfOrder(ValueError):
    """Of two settings of a section the first is above the second."""


class Needs(ValueError):
    """Of two settings of a section the first was given and the second, which it needs, was not."""
