"""Names of tables and of their parts."""

from __future__ import annotations

import pytest

from gateway.pravega.names import (
    TABLE_LETTERS_MAX,
    is_name,
    is_table_name,
    names_with_rights,
    stream_of,
)


@pytest.mark.parametrize("name", ["a", "A-1.b", "...", "a" * TABLE_LETTERS_MAX])
def test_a_table_has_a_name_as_pravega_takes_it(name: str) -> None:
    assert is_table_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "_a", "a_b", "a/b", "a b", "a\n", "ä", "a" * (TABLE_LETTERS_MAX + 1)]
)
def test_another_name_is_none(name: str) -> None:
    assert not is_table_name(name)


def test_no_stream_has_the_name_of_a_table_s_parts() -> None:
    assert stream_of("t") == "t_kvtable"
    assert not is_name(stream_of("t"))


def test_rights_to_a_table_are_those_of_its_name_and_of_its_parts_stream() -> None:
    assert names_with_rights("t") == names_with_rights("t_kvtable") == ("t", "t_kvtable")
