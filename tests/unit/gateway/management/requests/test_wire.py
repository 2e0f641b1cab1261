import json

import pytest

from gateway.management.errors import WrongRequest
from gateway.management.wire import (
    BODY_BYTES_MAX,
    pack_error,
    pack_request,
    pack_result,
    read_head,
)


def test_a_request_goes_as_one_line_and_is_read_back() -> None:
    line, end, body = pack_request("add_user", {"name": "a\nb\u2028é"}, b"12345").partition(b"\n")

    assert (end, body) == (b"\n", b"12345")
    head = read_head(line)
    assert (head.name, head.arguments, head.body_bytes) == (
        "add_user",
        {"name": "a\nb\u2028é"},
        5,
    )


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x\n",
        b"[]\n",
        b"{}\n",
        b'{"request": 5}\n',
        b'{"request": "a", "arguments": []}\n',
        b'{"request": "a", "more": 1}\n',
        b'{"request": "a", "body_bytes": -1}\n',
        b'{"request": "a", "body_bytes": true}\n',
        b'{"request": "a", "body_bytes": %d}\n' % (BODY_BYTES_MAX + 1),
        b"[" * 100_000,
        b"\xff\n",
    ],
)
def test_what_is_no_request_is_refused(line: bytes) -> None:
    with pytest.raises(WrongRequest):
        read_head(line)


def test_answers_are_one_line() -> None:
    assert json.loads(pack_result({"name": "a\nb"})) == {"result": {"name": "a\nb"}}
    assert json.loads(pack_error("not_found", "no\nway")) == {
        "error": "no\nway",
        "code": "not_found",
    }
    assert pack_result("\n").count(b"\n") == 1
