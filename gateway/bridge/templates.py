"""Templates: texts with fields of a message in braces, as `{routing_key}` or `eu.{header.region}`.

{routing_key} {exchange} {topic} {topic[2]}     where it was published; levels count from 0
{message_id} {correlation_id} {content_type} {subject} {app_id}     its properties
{header.NAME}                                   a header, application or user property
{stream} {offset}                               its place, if it comes from a stream
"""

import re
from collections.abc import Mapping
from typing import Final

from gateway.command_line import did_you_mean
from hutch.formats.amqp.message import AmqpMessage, message_of, properties_of
from hutch.formats.amqp.values import Value, text_of
from hutch.formats.mqtt import topic_in

_FIELD: Final = re.compile(r"\{([^{}]*)\}")
_PART: Final = re.compile(r"topic\[(\d+)\]|header\.(.+)")
_PROPERTIES: Final = {
    "message_id": "message_id",
    "correlation_id": "correlation_id",
    "content_type": "content_type",
    "subject": "subject",
    "app_id": "group_id",
}
_ANNOTATIONS: Final = {"routing_key": "x-routing-key", "exchange": "x-exchange"}
_PLACES: Final = ("stream", "offset")
NAMES: Final = (*_ANNOTATIONS, "topic", "topic[0]", *_PROPERTIES, "header.NAME", *_PLACES)


class Missing(ValueError):
    """A message without a field that a template needs; the text names it."""


class Template:
    """A text with fields of a message."""

    def __init__(self, text: str) -> None:
        """Take a text apart. Raises ValueError, with what was probably meant."""
        self.text: Final = text
        parts = _FIELD.split(text)
        self._texts: Final = parts[::2]
        self._fields: Final = parts[1::2]
        for stray in (part for part in self._texts if "{" in part or "}" in part):
            raise ValueError(f"a brace is alone in {stray!r}")
        for field in self._fields:
            if field not in NAMES and not _PART.fullmatch(field):
                known = ", ".join(NAMES)
                raise ValueError(
                    f"there is no field {{{field}}}{did_you_mean(field, NAMES)} ({known})"
                )

    def of(self, record: bytes, place: Mapping[str, str]) -> str:
        """Return the text for a message; `place` has the stream and offset. Raises Missing."""
        if not self._fields:
            return self.text
        message = message_of(record)
        filled = [self._texts[0]]
        for field, text in zip(self._fields, self._texts[1:], strict=True):
            value = place.get(field) if message is None else _value(field, message, place)
            if value is None or (found := text_of(value)) is None:
                raise Missing(f"it has no {field}, which {self.text!r} needs")
            filled += (found, text)
        return "".join(filled)


def _value(field: str, message: AmqpMessage, place: Mapping[str, str]) -> Value:
    annotations = message.message_annotations or {}
    if part := _PART.fullmatch(field):
        if name := part[2]:
            return (message.application_properties or {}).get(name, annotations.get(name))
        levels = (topic_in(message) or "").split("/")
        return levels[int(part[1])] or None if int(part[1]) < len(levels) else None
    if field in _PROPERTIES:
        return properties_of(message).get(_PROPERTIES[field])
    if field in _ANNOTATIONS:
        return annotations.get(_ANNOTATIONS[field])
    return topic_in(message) if field == "topic" else place.get(field)
