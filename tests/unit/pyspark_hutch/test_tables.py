"""Tables of a catalog: which may be made, and what a query of one says."""

from __future__ import annotations

import pytest

from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.tables import is_bare_table, require_options

OF_TABLE = {"owner": "me", "provider": "hutch"}


@pytest.mark.parametrize("options", [{}, {"path": "x"}, {"stream": "orders"}])
def test_a_load_is_no_table(options: dict[str, str]) -> None:
    assert not is_bare_table(options)


def test_a_table_without_options_of_ours_may_be_made() -> None:
    assert is_bare_table(OF_TABLE)
    assert is_bare_table(OF_TABLE | {"team": "a table property"})


@pytest.mark.parametrize("more", [{"Stream": "orders"}, {"option.steam": "x", "steam": "x"}])
def test_a_table_with_options_is_refused_with_what_works(more: dict[str, str]) -> None:
    with pytest.raises(WrongOption, match=r"use CREATE TEMPORARY VIEW .* SELECT .* WITH"):
        is_bare_table(OF_TABLE | more)


@pytest.mark.parametrize("options", [{}, {"path": "x"}, OF_TABLE])
def test_a_query_that_got_no_option_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(WrongOption, match="no option has come with this query; a catalog table's"):
        require_options(options)


def test_a_query_with_any_option_of_ours_is_looked_at_further() -> None:
    require_options({"steam": "x"})
