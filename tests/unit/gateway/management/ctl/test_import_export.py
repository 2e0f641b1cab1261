"""`hutch import` and `hutch export` on a real broker, with the files that they read and write."""

import io
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway import cli
from gateway.management.ctl import ctl, import_export
from gateway.management.ctl.asking import ServerRefused
from gateway.management.errors import AdministrationError
from tests.integration.administrator import FULL, run_here
from tests.unit.gateway.management.requests.administration_rig import Rig

STREAM = {"name": "s", "vhost": "/", "type": "stream", "durable": True, "arguments": {}}
DEFINITIONS = json.dumps({"vhosts": [{"name": "/"}], "queues": [STREAM]}).encode()


@pytest.fixture(autouse=True)
def asked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Let commands ask the broker, without a socket between."""

    def ask(_: Path, name: str, arguments: Mapping[str, Any], body: bytes = b"") -> object:
        try:
            return rig.ask(name, arguments, body)
        except AdministrationError as error:
            raise ServerRefused(str(error), error.code) from None

    monkeypatch.setattr(ctl, "ask", ask)
    return rig


def streams(rig: Rig) -> list[str]:
    return [stream["name"] for stream in rig.ask("list_streams")]


def test_a_file_is_imported_and_the_report_ends_with_what_was_changed(
    rig: Rig, tmp_path: Path
) -> None:
    file = tmp_path / "definitions.json"
    file.write_bytes(DEFINITIONS)

    dry = run_here("import", str(file), "--dry-run")
    assert streams(rig) == []
    done = run_here("import", str(file))
    again = run_here("import", str(file))

    assert dry[0] == done[0] == 0
    assert dry[1].splitlines()[-1] == "Nothing was changed; an import would change 2 objects."
    assert done[1].splitlines()[-1] == "2 objects were changed."
    assert again[1].splitlines()[-1] == "0 objects were changed."
    assert streams(rig) == ["s"]


def test_what_comes_by_standard_input_is_imported_too_and_shown_as_json(rig: Rig) -> None:
    code, said, _ = run_here("import", "-", "--json", stdin=DEFINITIONS)

    assert (code, streams(rig)) == (0, ["s"])
    assert json.loads(said) == {
        "changes": 2,
        "is_dry_run": False,
        "objects": [
            {"kind": kind, "virtual_host": host, "name": name, "outcome": "imported", "reason": ""}
            for kind, host, name in (("virtual host", "", "/"), ("stream", "/", "s"))
        ],
    }


@pytest.mark.parametrize("is_file", [True, False])
def test_each_fault_of_definitions_is_a_line_that_names_where_they_came_from(
    rig: Rig, tmp_path: Path, *, is_file: bool
) -> None:
    wrong = [{**STREAM, "name": name, "vhost": "none"} for name in ("a", "b")]
    content = json.dumps({"vhosts": [], "queues": wrong}).encode()
    file = tmp_path / "wrong.json"
    file.write_bytes(content)

    if is_file:
        code, said, complaint = run_here("import", str(file))
    else:
        code, said, complaint = run_here("import", "-", stdin=content)

    place = file if is_file else "standard input"
    assert (code, said, streams(rig)) == (1, "", [])
    assert len(complaint.splitlines()) == 2
    for line in complaint.splitlines():
        assert line.startswith(f"hutch: {place}: stream '")


def test_a_refusal_that_is_not_about_the_content_does_not_name_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> object:
        raise ServerRefused("too many ask", "busy")

    monkeypatch.setattr(ctl, "ask", refuse)

    assert run_here("import", "-", stdin=DEFINITIONS) == (1, "", "hutch: too many ask\n")


def test_a_file_that_cannot_be_read_is_wrong_use(rig: Rig, tmp_path: Path) -> None:
    missing, empty = tmp_path / "none.json", tmp_path / "empty.json"
    empty.write_text(" \n")

    assert run_here("import", str(missing)) == (
        2,
        "",
        f"hutch: cannot read {missing}: No such file or directory\n",
    )
    assert run_here("import", str(tmp_path)) == (
        2,
        "",
        f"hutch: cannot read {tmp_path}: Is a directory\n",
    )
    assert run_here("import", str(empty)) == (2, "", f"hutch: {empty} is empty\n")
    assert streams(rig) == []


@pytest.mark.parametrize("is_file", [True, False])
def test_definitions_have_the_size_of_a_body_at_most(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_file: bool
) -> None:
    size = len(DEFINITIONS)
    monkeypatch.setattr(import_export, "BODY_BYTES_MAX", size)
    file = tmp_path / "definitions.json"

    def imported(content: bytes) -> tuple[int, str]:
        file.write_bytes(content)
        words, stdin = (str(file), b"") if is_file else ("-", content)
        code, _, complaint = run_here("import", words, stdin=stdin)
        return code, complaint

    place = file if is_file else "-"
    assert imported(DEFINITIONS + b" ") == (2, f"hutch: {place} is larger than {size} bytes\n")
    assert streams(rig) == []
    assert imported(DEFINITIONS) == (0, "")
    assert streams(rig) == ["s"]


def test_an_export_replaces_a_file_whole_and_for_its_owner_alone(rig: Rig, tmp_path: Path) -> None:
    rig.ask("add_stream", {"name": "é"})
    file = tmp_path / "definitions.json"
    file.write_text("x" * 100_000)
    file.chmod(0o644)

    assert run_here("export", str(file)) == (0, "", "")

    assert [queue["name"] for queue in json.loads(file.read_bytes())["queues"]] == ["é"]
    assert "é" in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.glob("*definitions.json*")) == [file]


def test_an_export_goes_to_standard_output_where_no_file_is_named(
    capsys: pytest.CaptureFixture[str], rig: Rig
) -> None:
    rig.ask("import_definitions", {}, FULL.read_bytes())

    assert cli.main(["export", "--vhost", "orders"]) == 0

    assert json.loads(capsys.readouterr().out)["original_vhost_name"] == "orders"


def test_what_rabbitmq_cannot_use_is_warned_of_on_standard_error(tmp_path: Path) -> None:
    added = run_here("ctl", "add_user", "anna\n", "--password-hash", "argon2id", stdin=b"secret")
    assert added[0] == 0

    code, said, complaint = run_here("export", str(tmp_path / "file"))

    assert (code, said) == (0, "")
    (line,) = complaint.splitlines()
    assert line.startswith("hutch: warning: ")
    assert r"anna\n" in line
    assert "argon2id" not in (tmp_path / "file").read_text()


def test_a_file_that_cannot_be_written_is_wrong_use_and_nothing_is_left_of_it(
    tmp_path: Path,
) -> None:
    missing, folder = tmp_path / "none" / "file", tmp_path / "folder"
    folder.mkdir()
    before = sorted(tmp_path.iterdir())

    assert run_here("export", str(missing)) == (
        2,
        "",
        f"hutch: cannot write {missing}: No such file or directory\n",
    )
    assert run_here("export", str(folder)) == (
        2,
        "",
        f"hutch: cannot write {folder}: Is a directory\n",
    )

    assert sorted(tmp_path.iterdir()) == before


def test_output_that_cannot_be_written_is_left_to_the_entry_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open("/dev/full", "wb", buffering=0) as full:  # noqa: PTH123  # a device
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(full))
        with pytest.raises(OSError, match="No space left"):
            cli.main(["export"])
