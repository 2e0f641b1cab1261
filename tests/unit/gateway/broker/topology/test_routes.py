"""Which streams a routing key leads to, by type of exchange."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker.topology.routes import DirectRoutes, FanoutRoutes, NoRoutes, Routes, TopicRoutes

KEYS = st.lists(st.sampled_from(["a", "b", "", "*", "#"]), max_size=6).map(".".join)
BINDINGS = st.lists(st.tuples(KEYS, st.sampled_from("pqrs")), max_size=8)


def filled(routes: Routes, *bindings: tuple[str, str]) -> Routes:
    for key, stream in bindings:
        routes.add(key, stream)
    return routes


def fits(pattern: str, key: str) -> bool:
    """What a topic's pattern means, said by a regular expression over words."""
    words = "".join(f"{word}\x00" for word in key.split(".")) if key else ""
    parts = pattern.split(".") if pattern else []
    wild = {"*": "[^\x00]*\x00", "#": "(?:[^\x00]*\x00)*"}
    return bool(re.fullmatch("".join(wild.get(p, re.escape(p) + "\x00") for p in parts), words))


def test_direct_finds_what_is_bound_with_the_very_key() -> None:
    routes = filled(DirectRoutes(), ("k", "q"), ("k", "p"), ("other", "r"))

    assert routes.match("k") == ["q", "p"]
    assert routes.match("K") == []


def test_fanout_finds_everything() -> None:
    assert filled(FanoutRoutes(), ("k", "q"), ("", "p"), ("x", "q")).match("y") == ["q", "p"]


def test_headers_find_nothing() -> None:
    assert NoRoutes().match("k") == []


@given(BINDINGS, KEYS)
def test_a_topic_finds_what_its_patterns_mean(bindings: list[tuple[str, str]], key: str) -> None:
    routes = filled(TopicRoutes(), *bindings)

    expected = {stream for pattern, stream in bindings if fits(pattern, key)}

    assert sorted(routes.match(key)) == sorted(expected)


@pytest.mark.parametrize("kind", [DirectRoutes, FanoutRoutes, TopicRoutes])
@given(bindings=BINDINGS, key=KEYS, data=st.data())
def test_what_is_taken_out_is_as_if_it_had_never_been(
    kind: type[Routes], bindings: list[tuple[str, str]], key: str, data: st.DataObject
) -> None:
    routes = filled(kind(), *bindings)
    gone = data.draw(st.sets(st.integers(0, max(0, len(bindings) - 1)))) if bindings else set()
    for index in gone:
        routes.remove(*bindings[index])

    kept = [each for index, each in enumerate(bindings) if index not in gone]

    assert sorted(routes.match(key)) == sorted(filled(kind(), *kept).match(key))


def test_an_emptied_topic_keeps_nothing() -> None:
    routes = TopicRoutes()
    for key in ("a.b.c", "a.#", "#.#.#", ""):
        routes.add(key, "p")
    for key in ("a.b.c", "a.#", "#.#.#", ""):
        routes.remove(key, "p")

    assert routes._root.next == {}
    assert routes._root.streams == {}


def test_no_pattern_makes_a_key_expensive() -> None:
    routes = filled(TopicRoutes(), (".".join(["#", "*"] * 20), "p"), (".".join(["#"] * 50), "q"))
    began = time.process_time()

    assert sorted(routes.match(".".join(["a"] * 500))) == ["p", "q"]

    assert time.process_time() - began < 1
