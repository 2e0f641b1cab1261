"""Frames of the server, read by pymongo."""

import bson
import pytest
from bson import Int64
from bson.raw_bson import RawBSONDocument

from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code


def test_answers_are_what_clients_read() -> None:
    frames = {
        writing.stored(7): ("RESPONSE", {"rID": 7, "ok": True}),
        writing.stored(-(2**31)): ("RESPONSE", {"rID": -(2**31), "ok": True}),
        writing.connected(None): ("RESPONSE", {"ok": True}),
        writing.connected(0): ("RESPONSE", {"rID": 0, "ok": True}),
        writing.subscribed(3, 4): ("SUBRESPONSE", {"rID": 3, "ok": True, "subID": 4}),
    }
    for frame, (kind, fields) in frames.items():
        assert frame == bson.encode({"type": kind, "frame": fields})


@pytest.mark.parametrize(("as_text", "number"), [(False, 104), (True, "104")])
def test_errors_have_the_form_that_the_client_wants(*, as_text: bool, number: object) -> None:
    refused = writing.refused("RESPONSE", None, Code.BAD_REQUEST, "why", as_text=as_text)
    failure = {"ok": False, "errCode": number, "errMsg": "why"}
    assert refused == bson.encode({"type": "RESPONSE", "frame": failure})
    result = writing.no_result(9, Code.BAD_REQUEST, "why", as_text=as_text)
    fields = {"queryID": 9, **failure, "result": None, "last": True}
    assert result == bson.encode({"type": "QUERYRESULT", "frame": fields})


@pytest.mark.parametrize("event", [{}, {"a": "b" * 1000}])
def test_an_event_is_put_in_as_it_is(event: dict[str, object]) -> None:
    raw = bson.encode(event)
    fields = {
        "subID": 5,
        "timestamp": Int64(1_480_000_000_000),
        "pos": Int64(2**40),
        "event": RawBSONDocument(raw),
    }
    frame = writing.received(5, 1_480_000_000_000, 2**40, raw)
    assert frame == bson.encode({"type": "RECEV", "frame": fields})


def test_bytes_that_are_no_document_are_wrapped() -> None:
    assert bson.decode(writing.wrapped(b"\0\xff")) == {"data": b"\0\xff"}
