"""How `hutch ctl` shows scopes, their streams and groups of readers."""

import json
from typing import Any

import pytest

from gateway import cli
from tests.unit.gateway.management.ctl.conftest import Server

FIXED = {"type": "fixed", "min_segments": 3}
BY_RATE = {"type": "events_per_second", "target_rate": 10, "scale_factor": 2, "min_segments": 4}
NONE = {"type": "none"}
FOR_EVER = 2**63 - 1


def stream(**given: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": "orders",
        "state": "active",
        "segments": 3,
        "epoch": 1,
        "scaling": FIXED,
        "retention": NONE,
        "tags": ["a", "b"],
    }
    return fields | given


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert cli.main(["ctl", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_scopes_are_listed_with_their_numbers(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [{"name": "sales", "streams": 2, "reader_groups": 1, "tables": 0}]

    assert said(capsys, "list_scopes") == ["name\tstreams\treader_groups\ttables", "sales\t2\t1\t0"]
    assert said(capsys, "list_scopes", "tables,name") == ["tables\tname", "0\tsales"]
    assert server.asked[0][1:] == ("list_scopes", {})


def test_streams_of_a_scope_are_listed_in_columns(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [stream(), stream(name="x", tags=[])]

    assert said(capsys, "list_scope_streams", "sales") == [
        "name\tstate\tsegments\tepoch\tscaling\tretention\ttags",
        "orders\tactive\t3\t1\tfixed 3\tnone\ta,b",
        "x\tactive\t3\t1\tfixed 3\tnone\t",
    ]
    assert server.asked[0][1:] == ("list_scope_streams", {"scope": "sales"})


@pytest.mark.parametrize(
    ("scaling", "retention", "words"),
    [
        (FIXED, NONE, "fixed 3\tnone"),
        (BY_RATE, {"type": "time", "min": 7, "max": 0}, "10 events/s x2 from 4\t7 ms"),
        (
            BY_RATE | {"type": "kbytes_per_second"},
            {"type": "size", "min": 5, "max": 9},
            "10 KB/s x2 from 4\t5 to 9 bytes",
        ),
        (
            BY_RATE | {"type": "7"},
            {"type": "size", "min": 5, "max": FOR_EVER},
            "10 7 x2 from 4\t5 bytes",
        ),
        (FIXED, {"type": "-1", "min": 5, "max": 0}, "fixed 3\t5 -1"),
    ],
)
def test_policies_are_shown_in_a_few_words(
    server: Server,
    scaling: dict[str, Any],
    retention: dict[str, Any],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.answer = [stream(scaling=scaling, retention=retention)]

    _, row = said(capsys, "list_scope_streams", "sales", "scaling,retention")

    assert row == words


@pytest.mark.parametrize("form", [("--json",), ("--formatter", "json")])
def test_programs_get_the_parts_of_a_policy(
    server: Server, form: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [stream(scaling=BY_RATE)]

    shown = json.loads("".join(said(capsys, "list_scope_streams", *form, "sales")))

    assert shown == [stream(scaling=BY_RATE)]


def test_groups_of_readers_are_listed_with_members_and_what_they_have_not_read(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = [
        {
            "name": "a",
            "streams": ["s/1", "s/2"],
            "retention": "none",
            "members": None,
            "unread_bytes": None,
        },
        {
            "name": "b",
            "streams": ["s/1"],
            "retention": "manual_at_stream_cut",
            "members": ["one", "two\t\x1b"],
            "unread_bytes": 7,
        },
    ]

    assert said(capsys, "list_reader_groups", "sales") == [
        "name\tstreams\tretention\tmembers\tunread_bytes",
        "a\ts/1,s/2\tnone\t\t",
        "b\ts/1\tmanual_at_stream_cut\tone,two\\x09\\x1b\t7",
    ]
    assert server.asked[0][1:] == ("list_reader_groups", {"scope": "sales"})
