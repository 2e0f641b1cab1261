from pathlib import Path

import pytest

from gateway.stream import document
from gateway.stream.document import main, rewritten
from hutch.stream.commands import COMMANDS, Command
from hutch.stream.pipeline import PIPELINE

DOCS = Path(__file__).parents[4] / "docs"


@pytest.mark.parametrize("name", document.SECTIONS)
def test_a_page_is_up_to_date(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")

    assert rewritten(name, page) == page, f"run: python -m gateway.stream.document docs/{name}"


@pytest.mark.parametrize("commands", [COMMANDS, PIPELINE], ids=["standard", "pipeline"])
def test_every_command_has_its_row_and_its_purpose(commands: tuple[Command, ...]) -> None:
    rows = document.commands_table(commands).splitlines()[2:]

    assert len(rows) == len(commands)
    for command, row in zip(commands, rows, strict=True):
        cells = row.strip("| ").split(" | ")
        assert cells[:2] == [f"`{command.key:02x}`", f"`{command.name}`"]
        assert len(cells) == 9
        assert cells[8].endswith(".")


def test_states_are_named_in_their_order() -> None:
    row = next(row for row in COMMANDS if row.name == "sasl_authenticate")

    assert document.states(row.steps) == "authenticating → tuning; open"


def test_old_tables_are_replaced_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "protocol.md"
    path.write_text(
        "above\n"
        + "".join(
            f"<!-- begin {section} -->\nold\n<!-- end {section} -->\n"
            for section in document.SECTIONS["protocol.md"]
        )
    )

    assert main([str(path)]) == 0

    text = path.read_text(encoding="utf-8")
    assert text.startswith("above\n<!-- begin commands -->\n| key |")
    assert "old" not in text.splitlines()
    assert rewritten("protocol.md", text) == text


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="begin commands"):
        rewritten("protocol.md", "nothing here")


def test_a_page_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spark\.md is none of protocol\.md"):
        rewritten("spark.md", "<!-- begin commands -->\n\n<!-- end commands -->")


def test_the_page_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
