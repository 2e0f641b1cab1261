import re

import pytest

from pyspark_hutch.options.page import BEGIN, END, document, rewritten
from pyspark_hutch.options.table import OPTIONS, TABLE


def test_every_option_has_a_row_and_every_group_a_heading() -> None:
    page = document()

    assert re.findall(r"^\| `([^`]+)`", page, re.MULTILINE) == [
        option.name for option in OPTIONS.values()
    ]
    assert re.findall("^### (.*)$", page, re.MULTILINE) == [group.title for group in TABLE]


def test_every_row_has_five_cells() -> None:
    rows = [line for line in document().splitlines() if line.startswith("| ")]

    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {7}


@pytest.mark.parametrize(
    "row",
    [
        "| `advertised` | all | use or ignore | `use` | Whether",
        "| `endingOffsets` | batch reads | latest, or JSON by stream,",
        "| `maxTriggerDelay` | streaming reads | a time with its unit,",
        "| `subBatchSize` | writes | a whole number from 1 to 65535 | 100 with `compression`;",
        "| `streamPattern` | reads |  |  | Refused: no command of the protocol lists streams;",
    ],
)
def test_a_row_says_use_kind_default_and_meaning(row: str) -> None:
    assert row in document()


def test_a_page_is_written_anew_between_its_markers() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"

    once = rewritten(page)

    assert once == f"before\n{BEGIN}\n\n{document()}\n{END}\nafter\n"
    assert rewritten(once) == once


@pytest.mark.parametrize("page", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_a_page_without_markers_is_our_mistake(page: str) -> None:
    with pytest.raises(AssertionError, match="the page lacks"):
        rewritten(page)
