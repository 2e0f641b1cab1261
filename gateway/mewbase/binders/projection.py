"""Projections: how the events of a channel become the documents of a binder; no I/O.

An event changes the document that its id field names. The result for one event depends on that
document and on the event alone, so a binder is its channel, folded.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from gateway.mewbase.binders.binder import ID_BYTES_MAX, has_room
from gateway.mewbase.documents import (
    EMPTY,
    NoDocument,
    added,
    merged,
    text_of,
    value_in,
)
from gateway.mewbase.wire.kernel.documents import is_document
from gateway.mewbase.wire.reading import Element
from gateway.mewbase.wire.writing import document, text

Change = Callable[[dict[str, Any] | None, dict[str, Any]], Mapping[str, Any] | None]
"""A function of a user. It gets the document and the event, and returns the new document.

The document is None where there is none yet. A result of None leaves the document as it is.
"""

Fold = Callable[[str, bytes | None, bytes], bytes]
"""Makes a document from its id, its old bytes (None if it is new) and an event."""

_OPTIONS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_AUTO, tz_aware=True
)
_FIELD: Final = re.compile(r"\{([^{}]+)\}")
_PART: Final = r"(?:\{[^{}]+\}|[^.{}\0])+"
_PATH: Final = re.compile(rf"{_PART}(?:\.{_PART})*")
_NAMES: Final = re.compile(r"[^.\0]+(?:\.[^.\0]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """A projection, as a file describes it; `projections_file` judges the file.

    Attributes:
        name: Its name; its place in the channel is kept under it.
        channel: The channel whose events it takes.
        binder: The binder whose documents it changes.
        id: The field of an event that has the id of the document; with dots a path.
        mode: `replace`: the event is the document. `merge`: the event's fields replace those of
            the document. `add`: a quantity is added to a number in the document. `python`: a
            function makes it.
        path: For `add`: the number in the document. Dots lead into documents; `{field}` stands for
            that field of the event.
        quantity: For `add`: the field of the event that is added.
        function: For `python`: the entry point of the group `hutch.projections`.
        start: `from` in a file. `first`: a new projection begins at the channel's first event;
            `now`: at its end.
    """

    name: str
    channel: str
    binder: str
    id: str
    mode: str = "replace"
    path: str = ""
    quantity: str = ""
    function: str = ""
    start: str = "first"

    def id_of(self, event: bytes) -> str:
        """Return the id of the document that an event changes. Raises NoDocument: it names none."""
        name = _text_at(event, self.id)
        if not name:
            raise NoDocument(f"it has no field {self.id!r} with a text or a whole number")
        size = len(name.encode())
        if size > ID_BYTES_MAX:
            raise NoDocument(f"its id has {size} bytes, and {ID_BYTES_MAX} are the most")
        return name

    def fold(self, change: Change | None = None) -> Fold:
        """Return the function from an event to a document; `change` is the function of `python`."""
        if self.mode == "add":
            return self._added
        if self.mode == "merge":
            return lambda _, older, event: merged(older or EMPTY, event)
        if self.mode == "replace":
            return lambda _name, _older, event: event
        assert change is not None
        return lambda _, older, event: _changed(change, older, event)

    def _added(self, name: str, older: bytes | None, event: bytes) -> bytes:
        path = [_FIELD.sub(lambda m: _named(event, m[1]), part) for part in _parts_of(self.path)]
        amount = _value_at(event, self.quantity)
        if amount is None:
            raise NoDocument(f"it has no field {self.quantity!r}")
        begun = document(text("id", name)) if older is None else older
        return added(begun, [part.encode() for part in path], event, amount)


def names_fields(path: str) -> bool:
    """Return whether a text is the name of a field, or names with dots between them."""
    return _NAMES.fullmatch(path) is not None


def leads_somewhere(path: str) -> bool:
    """Return whether a text is names with dots between them, in which {field} stands for a name."""
    return _PATH.fullmatch(path) is not None and all(map(names_fields, _FIELD.findall(path)))


def _parts_of(path: str) -> list[str]:
    """Split a path at its dots, but not within braces."""
    return re.findall(_PART, path)


def checked(name: str, new: bytes) -> bytes:
    """Return a document that fits into its row. Raises NoDocument."""
    if not is_document(new, 0, len(new)):
        raise NoDocument("the document would be too deep")
    if not has_room(name.encode(), new):
        raise NoDocument(f"the document would have {len(new)} bytes, which is too much")
    return new


def _value_at(event: bytes, path: str) -> Element | None:
    return value_in(event, path.encode())


def _text_at(event: bytes, path: str) -> str | None:
    value = _value_at(event, path)
    return None if value is None else text_of(event, value)


def _named(event: bytes, field: str) -> str:
    found = _text_at(event, field)
    if not found or "\0" in found:
        raise NoDocument(f"it has no field {field!r} with a text or a whole number")
    return found


def _changed(change: Change, older: bytes | None, event: bytes) -> bytes:
    """Call a user's function. Raises NoDocument, whatever it raises or returns."""
    try:
        document_now = None if older is None else bson.decode(older, _OPTIONS)
        new = change(document_now, bson.decode(event, _OPTIONS))
        content = None if new is None else bson.encode(new, codec_options=_OPTIONS)
    except BaseException as error:  # a function may raise anything, and must not end its thread
        raise NoDocument(f"the function raised {error!r:.200}") from error
    if content is None:
        raise NoDocument("the function returned None")
    return content
