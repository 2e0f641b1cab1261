"""Bodies of AMQP messages that are more than a run of bytes."""

from hutch.formats.amqp.message import data_of, items_of
from hutch.formats.amqp.reading import value_of
from hutch.formats.amqp.sections import (
    DATA_SECTION,
    SEQUENCE_SECTION,
    VALUE_SECTION,
    NotAmqp,
    sections,
)
from hutch.formats.amqp.values import json_of
from pyspark_hutch.decoding.reasons import DATA, RAW, SEQUENCE, VALUE


def body_of(message: bytes) -> tuple[int, bytes]:
    """Put the body of a message together whose kind was found to be ODD_BODY.

    Several data sections are joined. A value that is no bytes and no text is JSON, sequences are
    one array of JSON. What cannot be read is raw: then the body is the message.
    """
    found: dict[int, list[bytes]] = {DATA_SECTION: [], SEQUENCE_SECTION: [], VALUE_SECTION: []}
    try:
        for code, start, end in sections(message, 0, len(message)):
            found.get(code, []).append(message[start:end])
        if data := found[DATA_SECTION]:
            return DATA, data_of(data)
        if values := found[VALUE_SECTION]:
            return VALUE, json_of(value_of(values[0])).encode()
        return SEQUENCE, json_of(items_of(found[SEQUENCE_SECTION])).encode()
    except NotAmqp:
        return RAW, message
