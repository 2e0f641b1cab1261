import re
import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.log import names

stream_names = st.text(min_size=1, max_size=300) | st.binary(min_size=1, max_size=300).map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)
PRAVEGA_NAME = re.compile(r"_?[A-Za-z0-9.-]{1,254}")


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("orders-1", "orders-1"),
        ("/", ".2f"),
        ("a.b_c d", "a.2eb.5fc.20d"),
        ("é", ".c3.a9"),
        ("\udcff", ".ff"),
        ("x" * 200, "x" * 200),
        ("é" * 33, ".c3.a9" * 33),
    ],
)
def test_a_name_is_written_in_letters_digits_and_hyphens(name: str, escaped: str) -> None:
    assert names.escape(name) == escaped


@pytest.mark.parametrize("name", ["x" * 201, "é" * 34])
def test_a_name_that_gets_too_long_is_a_hash(name: str) -> None:
    assert re.fullmatch(r"\.\.sha256-[0-9a-f]{64}", names.escape(name))


@given(stream_names, stream_names)
@example("é" * 34, "é" * 35)
@example("a.b", "a.2eb")
@example(".2f", "/")
@example("\udce9", "é")
def test_different_names_have_different_segments(one: str, other: str) -> None:
    same = one.encode("utf-8", "surrogateescape") == other.encode("utf-8", "surrogateescape")

    assert (names.data_segment("/", one, 1) == names.data_segment("/", other, 1)) == same


@given(stream_names, st.integers(1, 2**63))
@example("/", 1795512972661910)
def test_pravega_s_name_of_a_stream_is_that_of_its_chunks(name: str, generation: int) -> None:
    shown = names.pravega_name(name, name, generation)

    assert f"{shown}/0.#epoch.0" == names.data_segment(name, name, generation)
    assert names.is_of_a_stream(*shown.split("/"))


@given(stream_names, st.integers(1, 2**63))
def test_scope_and_stream_are_names_that_pravega_takes(name: str, generation: int) -> None:
    for segment in (
        names.data_segment(name, name, generation),
        names.index_segment(name, name, generation),
        names.filter_segment(name, name, generation),
    ):
        scope, stream, suffix = segment.split("/")
        assert PRAVEGA_NAME.fullmatch(scope)
        assert PRAVEGA_NAME.fullmatch(stream)
        assert stream.startswith("_")
        assert suffix == "0.#epoch.0"


def test_segments_are_named_as_other_readers_of_the_store_expect() -> None:
    assert names.data_segment("/", "orders", 7) == "rmq-.2f/_orders-7/0.#epoch.0"
    assert names.index_segment("/", "orders", 7) == "rmq-.2f/_orders-7-index/0.#epoch.0"
    assert names.filter_segment("/", "orders", 7) == "rmq-.2f/_orders-7-filters/0.#epoch.0"
    assert names.meta_table("/") == "rmq-.2f/_meta_kvtable/0.#epoch.0"
    assert names.operator_policy_table("/") == "rmq-.2f/_operator-policies_kvtable/0.#epoch.0"
    assert names.commits_table("/") == "rmq-.2f/_commits_kvtable/0.#epoch.0"
    assert names.stage_segment("/", 7) == "rmq-.2f/_..stage-7/0.#epoch.0"
    assert names.unit_segment("/", 7, 8) == "rmq-.2f/_..unit-7-8/0.#epoch.0"
    assert names.tracking_table("/") == "rmq-.2f/_tracking_kvtable/0.#epoch.0"


def test_an_index_is_not_the_data_of_a_stream_of_another_name() -> None:
    assert names.index_segment("/", "a", 1) != names.data_segment("/", "a-1-index", 1)
    assert names.index_segment("/", "a", 1) != names.data_segment("/", "a", 1)


def test_keys_of_a_generation_are_its_own() -> None:
    references = [b"", b"0", b"\x00", b"\x01", b"7\x00x"]
    keys = [names.tracking_key(generation, each) for generation in (1, 11) for each in references]
    keys += [names.snapshot_key(generation, part) for generation in (1, 11) for part in (0, 1, 10)]

    assert len(set(keys)) == len(keys)
    assert [names.generation_of(key) for key in keys].count(1) == len(keys) // 2


def test_a_segment_has_one_writer_id_forever() -> None:
    assert names.writer_of("a") == uuid.uuid5(uuid.NAMESPACE_URL, "a")


def test_segments_of_a_virtual_host_have_names_that_no_stream_has() -> None:
    held = [
        names.commits_table("/"),
        names.binder_table("/", "b"),
        names.stage_segment("/", 3),
        names.unit_segment("/", 4, 5),
        names.marks_segment("/", "s", 6),
    ]

    assert [name.rpartition("/0.")[0].rpartition("/")[2] for name in held] == [
        "_commits_kvtable",
        "_..binder-b_kvtable",
        "_..stage-3",
        "_..unit-4-5",
        "_MARK_s-6",
    ]
    assert {name.partition("/")[0] for name in held} == {names.scope_of("/")}


@pytest.mark.parametrize(
    ("held", "is_one"),
    [
        ("_a.2eb-7", True),
        ("_a.2eb-7-index", True),
        ("_a.2eb-7-filters", True),
        ("_a.2eb-8", False),
        ("_a-7", False),
        ("_a.2eb-7-others", False),
    ],
)
def test_what_a_stream_holds_is_named_after_it(held: str, *, is_one: bool) -> None:
    assert names.is_named_after(held, "a.b", 7) == is_one
