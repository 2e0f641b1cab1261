from pathlib import Path

import pytest

from gateway.broker.errors import InternalError
from gateway.management.definitions.first_start import FirstStart
from gateway.settings.errors import ConfigError
from tests.unit.gateway.management.definitions.definitions_rig import FULL
from tests.unit.gateway.management.requests.administration_rig import Rig


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "first.json"
    path.write_bytes(FULL)
    return path


def first(rig: Rig, file: Path | None) -> FirstStart:
    return FirstStart(rig.broker.store_rig.store, file)


def test_definitions_are_imported_at_the_first_start_and_never_again(
    rig: Rig, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    run = rig.broker.store_rig.run
    start = first(rig, file)
    read = run(start.begin(is_fresh=True))
    assert read is not None
    run(start.finish(rig.administration, read))

    assert rig.administration.virtual_hosts.names() == ["/", "empty", "orders"]
    assert "definition skipped kind=queue" in caplog.text
    assert run(first(rig, file).begin(is_fresh=False)) is None
    assert "definitions file is ignored" not in caplog.text, "it is the one that was taken"
    file.write_bytes(FULL + b"\n")
    assert run(first(rig, file).begin(is_fresh=False)) is None
    assert "definitions file is ignored" in caplog.text
    assert run(first(rig, None).begin(is_fresh=False)) is None


def test_an_import_that_was_cut_off_is_gone_on_with(
    rig: Rig, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = rig.broker.store_rig.run
    assert run(first(rig, file).begin(is_fresh=True)) is not None

    start = first(rig, file)
    read = run(start.begin(is_fresh=False))
    assert read is not None
    run(start.finish(rig.administration, read))

    assert run(first(rig, file).begin(is_fresh=False)) is None
    assert run(first(rig, None).begin(is_fresh=False)) is None
    assert "not all imported" not in caplog.text


def test_without_the_file_what_was_cut_off_is_told(
    rig: Rig, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = rig.broker.store_rig.run
    run(first(rig, file).begin(is_fresh=True))

    assert run(first(rig, None).begin(is_fresh=False)) is None

    assert "not all imported" in caplog.text


def test_a_server_that_had_been_started_before_imports_nothing(rig: Rig, file: Path) -> None:
    assert rig.broker.store_rig.run(first(rig, file).begin(is_fresh=False)) is None


@pytest.mark.parametrize("content", [None, b"{", b'{"users": [{"name": ""}], "vhosts": []}'])
def test_a_file_that_cannot_be_used_is_named_and_nothing_is_written(
    rig: Rig, file: Path, content: bytes | None
) -> None:
    run = rig.broker.store_rig.run
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)

    with pytest.raises(ConfigError, match=r"first\.json"):
        run(first(rig, file).begin(is_fresh=True))

    assert run(first(rig, file).begin(is_fresh=False)) is None


def test_definitions_that_the_server_cannot_take_stop_the_start_and_are_tried_again(
    rig: Rig, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rig.broker.store_rig.run
    start = first(rig, file)
    read = run(start.begin(is_fresh=True))
    assert read is not None

    async def refuse(*_: object) -> None:
        raise InternalError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(rig.broker.access, "put_many", refuse)
        with pytest.raises(ConfigError, match="the disk is full"):
            run(start.finish(rig.administration, read))

    assert run(first(rig, file).begin(is_fresh=False)) is not None
