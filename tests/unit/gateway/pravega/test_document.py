from pathlib import Path

import pytest

from gateway.pravega.document import BEGIN, END, commands_table, main, payload_of, rewritten
from hutch.pravega.commands import BY_CODE, COMMANDS, CommandCode
from hutch.pravega.early_messages import EARLY_COMMANDS

DOCS = Path(__file__).parents[4] / "docs"


@pytest.mark.parametrize(
    ("name", "rows"), [("pravega-wire.md", COMMANDS), ("pravega-early.md", EARLY_COMMANDS)]
)
def test_a_page_is_up_to_date(name: str, rows: tuple[CommandCode, ...]) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")

    assert rewritten(page, rows) == page, f"run: python -m gateway.pravega.document docs/{name}"


def test_every_command_has_its_row_and_its_purpose() -> None:
    rows = commands_table().splitlines()[2:]

    assert len(rows) == len(COMMANDS)
    for command, row in zip(COMMANDS, rows, strict=True):
        cells = row.strip("| ").split(" | ")
        assert cells[:2] == [str(command.code), f"`{command.name}`"]
        assert len(cells) == 5
        assert cells[4].endswith((".", ";", ":")) or len(cells[4]) > 40


def test_fields_that_may_be_absent_stand_in_brackets() -> None:
    assert payload_of(BY_CODE[8]) == "`writer_id` uuid · `event_number` long · [`request_id` long]"
    assert payload_of(BY_CODE[100]) == "none"


def test_old_tables_are_replaced_and_the_rest_is_kept(tmp_path: Path) -> None:
    paths = tmp_path / "pravega-wire.md", tmp_path / "pravega-early.md"
    for path in paths:
        path.write_text(f"above\n{BEGIN}old{END}\nbelow\n")

    assert main(list(map(str, paths))) == 0

    for path, rows in zip(paths, (COMMANDS, EARLY_COMMANDS), strict=True):
        assert path.read_text() == f"above\n{BEGIN}{commands_table(rows)}{END}\nbelow\n"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="begin commands"):
        rewritten("nothing here")


def test_the_page_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
