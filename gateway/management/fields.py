"""Typed fields of an object of JSON, taken one by one."""

from abc import ABC, abstractmethod
from typing import Any, Final

MISSING: Final = "missing"


class Fields(ABC):
    """Takes fields; one without a default must be there. Each method raises what `wrong` returns.

    Subclasses say where the fields are and what is raised.
    """

    __slots__ = ()

    @abstractmethod
    def given(self, name: str, default: object = None) -> Any:  # noqa: ANN401  # what JSON holds
        """Return the value of a field, or the default where there is none."""

    @abstractmethod
    def wrong(self, name: str, value: object, fault: str) -> Exception:
        """Return what says that a field is missing, or what its value is not."""

    def text(self, name: str, default: str | None = None) -> str:
        """Take a text."""
        value = self.given(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, value, MISSING if value is None else "not text")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Take a bool."""
        value = self.given(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, value, "neither true nor false")
        return value

    def integer(self, name: str, default: int) -> int:
        """Take a whole number."""
        value = self.given(name, default)
        if not is_integer(value):
            raise self.wrong(name, value, "not a whole number")
        return int(value)

    def number(self, name: str, default: float) -> float:
        """Take a number, a whole one of any size."""
        value: float = self.given(name, default)
        if type(value) not in (int, float):  # a bool is an int to isinstance
            raise self.wrong(name, value, "not a number")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """Take an object, empty where it is missing; an empty list is one (PHP writes it)."""
        value = self.given(name)
        if value is None or value == []:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(name, value, "not an object")
        return value


def is_integer(value: object) -> bool:
    """Return whether a value of JSON is a whole number."""
    return type(value) is int  # a bool is one to isinstance
