"""The table of frames has every field that the protocol's page has."""

from pathlib import Path

import pytest

from gateway.mewbase.wire.frames import FRAMES, SendingSide, ValueKind

PAGE = Path(__file__).parents[5] / "docs" / "protocols" / "mewbase.md"
TEXT, I32, I64, DOC, YES = (
    ValueKind.TEXT,
    ValueKind.INT32,
    ValueKind.INT64,
    ValueKind.DOCUMENT,
    ValueKind.BOOLEAN,
)
FIELDS = {
    "CONNECT": "version username? password?",
    "RESPONSE": "ok rID errCode? errMsg?",
    "PUB": "channel event rID sessID?",
    "STARTTX": "sessID rID",
    "COMMITTX": "sessID rID",
    "ABORTTX": "sessID rID",
    "SUBSCRIBE": "channel rID startPos? startTimestamp? durableID? matcher?",
    "SUBRESPONSE": "ok rID errCode? errMsg? subID?",
    "UNSUBSCRIBE": "subID rID",
    "SUBCLOSE": "subID rID",
    "RECEV": "subID timestamp pos event",
    "ACKEV": "subID",
    "QUERY": "queryID binder matcher",
    "QUERYRESULT": "queryID result last",
    "QUERYACK": "queryID",
}
"""The fields of the page by their frames; those with a question mark are optional there."""
KINDS = {
    "version": TEXT,
    "username": TEXT,
    "password": TEXT,
    "ok": YES,
    "rID": I64,
    "errCode": TEXT,
    "errMsg": TEXT,
    "channel": TEXT,
    "event": DOC,
    "sessID": I32,
    "startPos": I64,
    "startTimestamp": I64,
    "durableID": TEXT,
    "matcher": DOC,
    "subID": I32,
    "timestamp": I64,
    "pos": I64,
    "queryID": I32,
    "binder": TEXT,
    "result": DOC,
    "last": YES,
}
"""The type of each on the page."""
OTHERWISE = {
    ("RESPONSE", "rID"): "as it came; none if none came",
    ("RESPONSE", "errCode"): "int32: a string kills that client",
    ("SUBRESPONSE", "errCode"): "int32: a string kills that client",
    ("QUERY", "binder"): "A query that cannot be answered has one QUERYRESULT",
    ("QUERY", "matcher"): "or the one with the id `docID`",
    ("QUERYRESULT", "result"): "If nothing matches, there is one\nresult, null",
}
"""Fields that are not as on the page, and the words of our page that say so."""
TABLE = {frame.type: frame for frame in FRAMES}


@pytest.mark.parametrize(
    ("frame", "field"), [(frame, field) for frame, some in FIELDS.items() for field in some.split()]
)
def test_each_field_of_the_page_is_in_the_table_or_explained(frame: str, field: str) -> None:
    name = field.removesuffix("?")
    (row,) = (each for each in TABLE[frame].fields if each.name == name)
    is_same = row.kind is KINDS[name] and row.is_mandatory is not field.endswith("?")
    words = OTHERWISE.get((frame, name))
    assert is_same == (words is None)
    if words is not None:
        assert words in PAGE.read_text(encoding="utf-8")


def test_each_frame_that_the_page_names_is_answered_as_it_says() -> None:
    answers = {frame.type: frame.answer for frame in FRAMES if frame.sender is SendingSide.CLIENT}
    assert {kind for kind, answer in answers.items() if answer == "RESPONSE"} == {
        "CONNECT",
        "PUB",
        "STARTTX",
        "COMMITTX",
        "ABORTTX",
        "UNSUBSCRIBE",
        "SUBCLOSE",
        "CREATECHANNEL",  # these are not on the page
        "FINDBYID",
    }
    assert answers["SUBSCRIBE"] == "SUBRESPONSE"
    assert answers["QUERY"] == "QUERYRESULT"


def test_frames_and_fields_are_named_once() -> None:
    names = [name for frame in FRAMES for name in (frame.type, *frame.aliases)]
    assert len(names) == len(set(names))
    for frame in FRAMES:
        fields = [field.name for field in frame.fields]
        assert len(fields) == len(set(fields))
