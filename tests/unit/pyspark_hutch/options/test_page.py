import re
from pathlib import Path

import pytest

from pyspark_hutch.options.page import BEGIN, END, document, main, rewritten
from pyspark_hutch.options.table import OPTIONS, TABLE

PAGE = Path(__file__).parents[4] / "docs" / "spark.md"


def test_docs_spark_md_is_what_make_docs_would_write() -> None:
    written = PAGE.read_text(encoding="utf-8")

    assert written == rewritten(written), "run `make docs`"


def test_every_option_has_a_row_and_every_group_a_heading() -> None:
    page = document()

    assert re.findall(r"^\| `([^`]+)`", page, re.MULTILINE) == [
        option.name for option in OPTIONS.values()
    ]
    assert re.findall("^### (.*)$", page, re.MULTILINE) == list(TABLE)


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
        "| `segmentRoot` | reads |  |  | Refused: rows are read over the protocol;",
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


def test_the_command_writes_the_page_that_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")

    assert main([str(page)]) == 0
    assert page.read_text(encoding="utf-8") == rewritten(f"{BEGIN}\n{END}\n")
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: ")
