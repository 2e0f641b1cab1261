import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.management.http.paths import (
    SEGMENTS_MAX,
    WrongPath,
    decode,
    encode,
    segments_of,
    without_secrets,
)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (b"/", [""]),
        (b"/api/queues", ["api", "queues"]),
        (b"/api/queues/", ["api", "queues"]),
        (b"/api/queues/%2F/a%20b", ["api", "queues", "/", "a b"]),
        (b"/api/queues/%2f/%252F", ["api", "queues", "/", "%2F"]),
        (b"/api/%C3%A9/+", ["api", "é", "+"]),
        (b"/api/%2e%2e/x", ["api", "..", "x"]),
        (b"/api/%FF", ["api", "\udcff"]),
    ],
)
def test_percent_signs_are_read_once_and_within_a_segment(path: bytes, names: list[str]) -> None:
    assert [decode(segment) for segment in segments_of(path)] == names


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"api",
        b"http://elsewhere/api",
        b"/api/../x",
        b"/api/./x",
        b"/api//x",
        b"/api/x//",
        b"//api/x",
        b"//",
        b"/api/%2",
        b"/api/%zz",
        b"/api/<script>",
        b'/api/"',
        b"/api/a\\b",
        b"/api/\x00",
        b"/api/\xff",
        b"/x" * (SEGMENTS_MAX + 1),
    ],
)
def test_a_path_that_can_be_read_in_two_ways_is_refused(path: bytes) -> None:
    with pytest.raises(WrongPath):
        segments_of(path)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_every_name_survives_being_a_segment(name: str) -> None:
    encoded = encode(name).encode("ascii")

    assert decode(encoded) == name
    if encoded not in {b".", b".."}:
        assert segments_of(b"/" + encoded + b"/x") == [encoded, b"x"]


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        (b"/api/exchanges/%2F//publish", [b"%2F", b"amq.default", b"publish"]),
        (b"/api/exchanges/%2F//", [b"%2F", b"amq.default"]),
        (b"/api/exchanges/%2F/", [b"%2F"]),
        (b"/api/bindings/%2F/e//q/s", [b"%2F", b"e", b"amq.default", b"q", b"s"]),
    ],
)
def test_the_default_exchange_may_have_its_empty_name(path: bytes, segments: list[bytes]) -> None:
    assert segments_of(path)[2:] == segments


@pytest.mark.parametrize(
    "path",
    [
        b"/api/exchanges//e/publish",
        b"/api/exchanges/%2F//publish//",
        b"/api/exchanges/%2F///",
        b"/api/bindings//e//q/s",
        b"/api/bindings/%2F/e//q//k",
        b"/api/queues/%2F//bindings",
        b"/api//exchanges/%2F//publish",
    ],
)
def test_no_other_segment_is_empty(path: bytes) -> None:
    with pytest.raises(WrongPath):
        segments_of(path)


def test_a_path_for_the_log_is_without_the_password_in_it() -> None:
    assert without_secrets("/api/auth/hash_password/p\nw/x") == "/api/auth/hash_password/…"
    for path in ("/api/auth/attempts/node", "/api/queues/%2F/hash_password"):
        assert without_secrets(path) == path
