from pathlib import Path

import pytest

from gateway.stream.wire import document
from gateway.stream.wire.commands import COMMANDS
from gateway.stream.wire.document import main, rewritten

PAGE = Path(__file__).parents[5] / "docs" / "protocol.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert rewritten(page) == page, "run: python -m gateway.stream.wire.document docs/protocol.md"


def test_every_command_has_its_row_and_its_purpose() -> None:
    rows = document.commands_table().splitlines()[2:]

    assert len(rows) == len(COMMANDS)
    for command, row in zip(COMMANDS, rows, strict=True):
        cells = row.strip("| ").split(" | ")
        assert cells[:2] == [f"`{command.key:02x}`", f"`{command.name}`"]
        assert len(cells) == 9
        assert cells[8].endswith(".")


def test_states_are_named_in_their_order() -> None:
    row = next(row for row in COMMANDS if row.name == "sasl_authenticate")

    assert document.states(row.steps) == "authenticating → tuning; open"


def test_old_tables_are_replaced_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "above\n"
        + "".join(f"<!-- begin {n} -->\nold\n<!-- end {n} -->\n" for n in document.SECTIONS)
    )

    assert main([str(path)]) == 0

    text = path.read_text(encoding="utf-8")
    assert text.startswith("above\n<!-- begin commands -->\n| key |")
    assert "old" not in text.splitlines()
    assert rewritten(text) == text


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="begin commands"):
        rewritten("nothing here")


def test_the_page_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
