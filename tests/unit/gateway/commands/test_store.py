"""The command line of `hutch store`: its help, what it refuses, and how far it says it has come."""

import io
from pathlib import Path

import pytest

from gateway import cli
from gateway.commands.progress import Progress
from store.api import Durability
from store.files import DirectoryFiles
from tests.unit.store.local.opened import opened
from tests.unit.store.local.test_overlay import state_of


def store_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main(["store", *arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


class Terminal(io.StringIO):
    """Takes text as a terminal does."""

    def isatty(self) -> bool:
        return True


def test_the_help_of_each_action_has_its_flags_examples_and_exit_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = store_help(capsys)
    check = store_help(capsys, "check")
    shown = store_help(capsys, "inspect")

    assert "find what is damaged" in both
    assert "show what is stored" in both
    for text, flags in ((check, ["--repair"]), (shown, ["--limit N", "--offset N", "--vhost"])):
        assert all(flag in text for flag in [*flags, "--data DIR"])
        assert "examples:" in text
        assert "exit codes:" in text


@pytest.mark.parametrize("action", ["check", "inspect"])
def test_a_directory_without_a_store_is_refused_in_one_line_and_not_made(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.main(["store", action, "--data", str(tmp_path / "missing")])

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err == (
        f"hutch: {tmp_path}/missing holds no store: name the data directory of a server\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_what_a_power_cut_took_is_a_note_and_no_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "data"
    rig = opened(DirectoryFiles(directory), Durability.OS, inline_bytes_max=0)
    session = rig.session("a")
    for number in (1, 2):
        rig.do(session.append, b"0123456789", number)
    rig.crash()
    (path,) = (directory / "data").iterdir()
    path.write_bytes(path.read_bytes()[:19].ljust(20, b"X"))
    before = state_of(directory)

    code = cli.main(["store", "check", "--data", str(directory)])

    out = capsys.readouterr().out
    assert (code, state_of(directory)) == (0, before)
    assert out.startswith(f"note: segment was cut segment=a position=10 file=data/{path.name}\n")
    assert out.endswith(": all is sound\n")


def test_a_limit_of_nothing_is_refused(tmp_path: Path) -> None:
    assert cli.main(["store", "inspect", "--limit", "0", "--data", str(tmp_path)]) == 2


def test_a_long_check_says_now_and_then_how_far_it_has_come() -> None:
    now = [0.0]
    out = io.StringIO()
    progress = Progress(out, 10_000_000, lambda: now[0])

    for _ in range(12):
        now[0] += 1.0
        progress.walked(500_000)
    progress.leave()

    assert out.getvalue() == "checked 2.5 of 10.0 MB\nchecked 5.0 of 10.0 MB\n"


def test_on_a_terminal_it_is_one_line_that_goes_away() -> None:
    now = [0.0]
    out = Terminal()
    progress = Progress(out, 1_000_000, lambda: now[0])

    now[0] += 1.0
    progress.walked(500_000)
    progress.leave()

    assert out.getvalue() == "\rchecked 0.5 of 1.0 MB\r\x1b[K"
