"""Typed fields of an object of JSON, as the arguments of a request, taken one by one and judged."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from gateway.broker.locks import Check, unchecked
from gateway.management.errors import WrongRequest

MISSING: Final = "missing"
DEPTH_MAX: Final = 40
"""Levels of lists and objects within an object of the definitions."""
VALUE_DEPTH_MAX: Final = DEPTH_MAX - 2
"""The same of what an object holds, as a binding's arguments or, within a parameter's value, the
definition of a policy. What is taken any other way has no more, or an export could not be read."""


class JsonFields(ABC):
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


T = TypeVar("T")

_TEXT_MAX: Final = 65_536
_INTEGER_MAX: Final = 2**63 - 1
_OFFSET_MAX: Final = 2**64 - 1
_AS_BYTES: Final = ("utf-8", "surrogateescape")


class Arguments(JsonFields):
    """Arguments of a request. Every method raises WrongRequest, naming the argument.

    Attributes:
        judge: Judges again, by the state of that moment, whether the request is allowed; raises
            NotAllowed or NotFound.
        body: The bytes that came along.
    """

    def __init__(
        self, given: Mapping[str, Any], judge: Check = unchecked, body: bytes = b""
    ) -> None:
        self._given = dict(given)
        self.judge = judge
        self.body = body

    def given(self, name: str, default: object = None) -> Any:  # noqa: ANN401  # what JSON holds
        """Take what was given, the default if nothing was."""
        return self._given.pop(name, default)

    def wrong(self, name: str, _: object, fault: str) -> WrongRequest:
        """Return what is told of a wrong argument."""
        return WrongRequest(f"{name} is {fault}")

    def text(self, name: str, default: str | None = None) -> str:
        """Take a text; one without a default is demanded."""
        return usable_text(name, super().text(name, default))

    def name(self, name: str = "name", default: str | None = None) -> str:
        """Take the name of something that clients make: bytes, which need not be UTF-8.

        Those that are not are written as Python and JSON write them, 0xff as U+DCFF.
        """
        value = _short(name, super().text(name, default))
        try:
            # What was escaped and need not have been is the same name as without.
            return value.encode(*_AS_BYTES).decode(*_AS_BYTES)
        except UnicodeEncodeError:
            raise WrongRequest(f"{name} is not Unicode text") from None

    def optional_text(self, name: str) -> str | None:
        """Take a text if there is one."""
        return None if self._given.get(name) is None else self.text(name)

    def integer(self, name: str, default: int) -> int:
        """Take a whole number."""
        return self._within(name, default, -_INTEGER_MAX, _INTEGER_MAX)

    def _within(self, name: str, default: int, least: int, most: int) -> int:
        value = super().integer(name, default)
        if not least <= value <= most:
            raise WrongRequest(f"{name} is not within {least} and {most}")
        return value

    def optional_integer(self, name: str) -> int | None:
        """Take a whole number if there is one."""
        return None if self._given.get(name) is None else self.integer(name, 0)

    def optional_offset(self, name: str) -> int | None:
        """Take an offset if there is one: any u64, as in the stream protocol."""
        return None if self._given.get(name) is None else self._within(name, 0, 0, _OFFSET_MAX)

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts, empty if it is missing."""
        value = self.given(name, [])
        if not isinstance(value, list):
            raise self.wrong(name, value, "not a list")
        return tuple(Arguments({name: item}).text(name) for item in value)

    def mapping(self, name: str) -> dict[str, Any]:
        """Take an object, empty if it is missing; definitions can hold it."""
        value = self.given(name, {})
        if not isinstance(value, dict):
            raise self.wrong(name, value, "not an object")
        return usable_mapping(name, value)

    def thing(self, name: str, of_type: type[T]) -> T | None:
        """Take an object that was made before it was asked for, None if there is none."""
        if not isinstance(self._given.get(name), of_type):
            return None
        made: T = self._given.pop(name)
        return made

    def end(self) -> None:
        """Demand that nothing is left: an argument misspelt must not be lost."""
        if self._given:
            raise WrongRequest(f"there is no argument {min(self._given)!r}"[:200])


def usable_text(name: str, value: str) -> str:
    """Return a text that a request takes. Raises WrongRequest."""
    if not is_text(_short(name, value)):
        raise WrongRequest(f"{name} is not Unicode text")
    return value


def _short(name: str, value: str) -> str:
    if len(value) > _TEXT_MAX:
        raise WrongRequest(f"{name} has {len(value)} characters, more than {_TEXT_MAX}")
    return value


def usable_mapping(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return an object that definitions can hold. Raises WrongRequest."""
    if fault := fault_within(value, VALUE_DEPTH_MAX):
        raise WrongRequest(f"{name} {fault}"[:200])
    return value


def demand_values(arguments: Mapping[str, Any]) -> None:
    """Demand values that all protocols have: none of them is null. Raises WrongRequest."""
    if _holds_null(arguments):
        raise WrongRequest("null_not_allowed")


def _holds_null(value: object) -> bool:
    left = [value]
    while left:
        one = left.pop()
        if one is None:
            return True
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return False


def is_integer(value: object) -> bool:
    """Return whether a value of JSON is a whole number."""
    return type(value) is int  # a bool is one to isinstance


class HugeNumber:
    """Stands for a whole number of too many digits."""

    def __init__(self, digits: int) -> None:
        self.digits = digits

    def __str__(self) -> str:
        return f"a number of {self.digits} digits"


class DoubledKey(dict[str, object]):
    """An object in which a key stands twice."""

    key: str = ""


def fault_within(value: object, depth_max: int = DEPTH_MAX) -> str:
    """Return what makes no sense in a value or what it holds; empty if all is well."""
    level: list[object] = [value]
    for _ in range(depth_max):
        below: list[object] = []
        for item in level:
            if fault := _fault_of(item):
                return fault
            if isinstance(item, dict):
                below.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return ""
        level = below
    return f"is nested deeper than {depth_max} levels"


def _fault_of(item: object) -> str:
    if isinstance(item, DoubledKey):
        return f"has the key {item.key[:100]!r} twice"
    if isinstance(item, HugeNumber):
        return f"has {item}"
    if isinstance(item, float) and item in (float("inf"), float("-inf")):
        return "has a number that is too large"
    if isinstance(item, str) and not is_text(item):
        return f"has {item[:100]!r}, which is not Unicode text"
    return ""


def is_text(text: str) -> bool:
    """Return whether a JSON string is Unicode text: half of a surrogate pair is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def key_list(text: str) -> list[str]:
    """Read texts with commas between them."""
    return [key.strip() for key in text.split(",") if key.strip()]
