"""One entry of definitions: its fields taken one by one, each fault named with the object."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from gateway.broker.access.model import check_name
from gateway.broker.errors import UnusableValue
from gateway.broker.patterns import Pattern, UnusablePattern, length_fault
from gateway.management.errors import shown
from gateway.management.fields import MISSING, JsonFields, fault_within, is_integer, is_text

NAME_BYTES_MAX: Final = 65_535
"""No name is longer on any wire."""


class Fault(Exception):
    """A fault of an entry."""


class Skip(Exception):
    """An object of the file is left out; the message says why."""


class Needless(Skip):
    """An object of the file is left out, and is not missed."""


class DefinitionEntry(JsonFields):
    """An object of JSON, with notes on what of it could not be taken as it is."""

    def __init__(self, content: object) -> None:
        if fault := fault_within(content):  # first: newer Pythons read what is nested very deeply
            raise Fault(fault)
        if not isinstance(content, dict):
            raise Fault("is not an object with its fields")
        self._content: Mapping[str, object] = content
        self.notes: list[str] = []

    def __contains__(self, field: str) -> bool:
        return field in self._content

    def given(self, name: str, default: object = None) -> Any:  # noqa: ANN401  # what JSON holds
        """Return what is there, the default if nothing is."""
        return self._content.get(name, default)

    def wrong(self, name: str, value: object, fault: str) -> Fault:
        """Return the fault of a field."""
        return Fault(f"{name} is {'' if fault == MISSING else f'{shown(value)}, '}{fault}")

    def name(self, field: str = "name") -> str:
        """Return a name: text of a bounded length."""
        text = self.text(field)
        if len(text.encode()) > NAME_BYTES_MAX:
            raise Fault(f"{field} is longer than {NAME_BYTES_MAX} bytes")
        return text

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; the default, if there is one, where it is missing or null."""
        return default if default is not None and self.given(name) is None else super().text(name)

    def tags(self, field: str = "tags") -> tuple[str, ...]:
        """Return tags: a list of texts, or one text with commas, as older exports have it."""
        value = self.given(field)
        if value is None:
            return ()
        if isinstance(value, str):
            value = [tag.strip() for tag in value.split(",")]
        if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
            raise self.wrong(field, value, "not a list of texts")
        return tuple(dict.fromkeys(tag for tag in value if tag))

    def limits(self, field: str, known: frozenset[str]) -> dict[str, int]:
        """Return limits; those that none would keep are left out, with a note."""
        limits: dict[str, int] = {}
        for limit, value in sorted(self.mapping(field).items()):
            if not is_integer(value):
                raise Fault(f"limit {limit} is {shown(value)}, not a whole number")
            if limit in known:
                limits[limit] = value
            else:
                self.notes.append(f"limit {limit} left out: it is not known")
        return limits


def label(kind: str, index: int, content: object, field: str = "name") -> str:
    """Name an entry in a message, by what it calls itself if it does."""
    name = content.get(field) if isinstance(content, dict) else None
    text = f"{kind}[{index}]"
    if not isinstance(name, str) or not is_text(name):
        return text
    host = content.get("vhost") if isinstance(content, dict) else None
    where = f" in virtual host {shown(host)}" if isinstance(host, str) else ""
    return f"{text} {shown(name)}{where}"


@dataclass(frozen=True, slots=True)
class Context:
    """Facts that the meaning of an entry depends on.

    Attributes:
        virtual_host: Of the entries that name none, as in the export of one virtual host.
        queue_types: The default queue type of each virtual host of the file.
    """

    virtual_host: str | None
    queue_types: Mapping[str, str | None]

    def host_of(self, entry: DefinitionEntry) -> str:
        """Return the virtual host that an entry belongs to."""
        if "vhost" not in entry and self.virtual_host is not None:
            return self.virtual_host
        return entry.name("vhost")


def required_pattern(entry: DefinitionEntry, field: str) -> str:
    """Return a regular expression that can be used here; Skip if it cannot."""
    pattern = entry.text(field)
    if fault := length_fault(pattern) or _pattern_fault(pattern):
        raise Skip(f"{field} {fault}")
    return pattern


@lru_cache(maxsize=4096)
def _pattern_fault(pattern: str) -> str:
    try:
        Pattern(pattern)
    except UnusablePattern as error:
        return str(error)
    return ""


def usable_name(name: str, what: str) -> str:
    """Return a name that a user, virtual host or policy can have; Fault if it cannot be one."""
    try:
        check_name(name, what)
    except UnusableValue as error:
        raise Fault(str(error)) from None
    return name


def require_type(name: str, value: object, *, is_text: bool) -> None:
    """Demand that a value is a text or a whole number. Raises Fault."""
    if is_text and not isinstance(value, str):
        raise Fault(f"{name} is {shown(value)}, not text")
    if not is_text and not is_integer(value):
        raise Fault(f"{name} is {shown(value)}, not a whole number")
