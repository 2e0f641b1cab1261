"""Frames of the server, read by pymongo."""

from typing import Any

import bson
import pytest
from bson import Int64
from bson.raw_bson import RawBSONDocument

from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("RESPONSE", {"rID": 0, "ok": True}),
        ("RESPONSE", {"rID": 3, "ok": True, "exists": False}),
        ("RESPONSE", {"rID": Int64(2**31), "ok": True, "result": None}),
        ("SUBRESPONSE", {"rID": Int64(-(2**31) - 1), "ok": True, "subID": 4}),
        ("QUERYRESULT", {"queryID": 9, "ok": True, "result": {"a": ["b"]}, "last": False}),
        ("QUERYRESPONSE", {"queryID": 9, "ok": False, "errCode": "1", "errMsg": "größer"}),
    ],
)
def test_an_answer_has_the_fields_that_are_given(kind: str, fields: dict[str, Any]) -> None:
    given = {
        name: bson.encode(value) if isinstance(value, dict) else value
        for name, value in fields.items()
    }
    assert writing.answer(kind, **given) == bson.encode({"type": kind, "frame": fields})


def test_a_field_that_is_none_is_left_out_but_for_a_document() -> None:
    frame = writing.answer("RESPONSE", rID=None, ok=True, errMsg=None, result=None)
    assert bson.decode(frame) == {"type": "RESPONSE", "frame": {"ok": True, "result": None}}


@pytest.mark.parametrize(("kind", "field"), [("RESPONSE", "subID"), ("PUB", "rID"), ("X", "ok")])
def test_what_the_table_has_not_is_no_answer(kind: str, field: str) -> None:
    with pytest.raises(KeyError):
        writing.answer(kind, **{field: 1})


@pytest.mark.parametrize("request_id", [7, -(2**31), 2**31])
def test_a_request_that_is_done_is_named(request_id: int) -> None:
    frame = writing.stored(request_id)
    assert frame == writing.answer("RESPONSE", rID=request_id, ok=True)
    assert bson.decode(frame)["frame"] == {"rID": request_id, "ok": True}


@pytest.mark.parametrize(("as_text", "number"), [(False, 104), (True, "104")])
def test_errors_have_the_form_that_the_client_wants(*, as_text: bool, number: object) -> None:
    failure = writing.failure(Code.BAD_REQUEST, "why", as_text=as_text)
    assert failure == {"ok": False, "errCode": number, "errMsg": "why"}
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
