"""What is left of streams in the store when creating and deleting them goes wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.broker.streams.catalogue import StreamCatalogue
from gateway.log import names
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from store.errors import DiskFull, NoSuchSegment, StoreError
from store.local.store import LocalStore
from tests.conformance.harness import wrap_operation
from tests.unit.gateway.log.log_rig import snapshot_after_chunks
from tests.unit.gateway.stream.link_rig import Broker, LinkRig


@pytest.fixture
def broker(tmp_path: Path) -> Any:  # noqa: ANN401 - a Broker, closed afterwards
    broker = Broker(tmp_path)
    yield broker
    broker.close()


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    client = broker.link()
    client.create("s")
    return client


def refuse(monkeypatch: pytest.MonkeyPatch, broker: Broker, operation: str) -> None:
    """Let an operation of the store fail from now on."""

    def fail(*_arguments: object, done: Callable[[StoreError], None], **_options: object) -> None:
        done(DiskFull("for the test"))

    wrap_operation(monkeypatch, broker.store_rig.store, operation, fail)


def tracking_keys(broker: Broker) -> list[bytes]:
    page = broker.store_rig.do(broker.store_rig.store.iterate_table, names.tracking_table("/"))
    return [entry.key for entry in page.entries]


def catalogued(broker: Broker) -> list[tuple[str, int, str]]:
    catalogue = StreamCatalogue(broker.store_rig.store, names.meta_table("/"))
    entries = broker.store_rig.run(catalogue.load())
    return [(entry.name, entry.generation, entry.state) for entry in entries]


def has_segment(broker: Broker, segment: str) -> bool:
    try:
        broker.store_rig.do(broker.store_rig.store.info, segment)
    except NoSuchSegment:
        return False
    return True


# Creation


@pytest.mark.parametrize("is_store_well_soon", [True, False])
def test_a_creation_that_the_store_refuses_leaves_nothing(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch, *, is_store_well_soon: bool
) -> None:
    broker = client.broker
    with monkeypatch.context() as patch:
        refuse(patch, broker, "create_segment")
        if not is_store_well_soon:
            refuse(patch, broker, "remove_keys")
        code = client.code("create_stream", m.CreateStream("t", {}))

    assert code == ResponseCode.INTERNAL_ERROR
    left = [state for name, _, state in catalogued(broker) if name == "t"]
    assert left == ([] if is_store_well_soon else ["deleting"])
    client.create("t")
    assert [each[2] for each in catalogued(broker)] == ["live", "live"]


def test_a_stream_whose_segment_is_missing_is_named_and_begins_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(tmp_path)
    broker.link().create("lost", "kept")
    broker.lose_segment("lost")
    broker.close()

    again = Broker(tmp_path)

    lines = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert lines == ["stream has lost its segment and begins empty stream=lost virtual_host=/"]
    assert again.log("lost").is_empty
    again.close()


# Deletion


def test_what_was_tracked_of_a_stream_goes_before_its_place_in_the_catalogue(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = client.broker
    client.tell("store_offset", m.StoreOffset("ref", "s", 1))
    assert client.code("query_offset", m.QueryOffset("ref", "s")) == ResponseCode.OK
    assert len(tracking_keys(broker)) == 1

    with monkeypatch.context() as patch:

        async def fail(*_: object, **_options: object) -> None:
            raise DiskFull("for the test")

        patch.setattr(broker.streams.catalogue, "remove", fail)
        client.tell("delete_stream", m.DeleteStream("s"))

    assert tracking_keys(broker) == []
    assert [each[2] for each in catalogued(broker)] == ["deleting"]


def test_a_snapshot_on_its_way_leaves_nothing_behind_a_deletion(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = client.broker
    snapshot_after_chunks(monkeypatch, 1)
    client.declare(1, "s")
    log = broker.log("s")
    generation = broker.stream("s").entry.generation
    index = names.index_segment("/", "s", generation)
    client.publish_filtered(1, (1, "fig", b"a"))
    broker.loop.run_until(lambda: log.saved.saving is not None)

    client.tell("delete_stream", m.DeleteStream("s"))
    broker.loop.run_for(0.1)

    assert tracking_keys(broker) == []
    assert not has_segment(broker, index)
    assert not has_segment(broker, names.filter_segment("/", "s", generation))


def test_the_filter_values_of_a_stream_go_with_it(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = client.broker
    snapshot_after_chunks(monkeypatch, 1)
    client.declare(1, "s")
    segment = names.filter_segment("/", "s", broker.stream("s").entry.generation)
    client.publish_filtered(1, (1, "fig", b"a"))
    broker.settle("s")
    broker.loop.run_for(0.1)
    assert has_segment(broker, segment)

    client.tell("delete_stream", m.DeleteStream("s"))
    broker.loop.run_for(0.1)

    assert not has_segment(broker, segment)


@pytest.mark.parametrize("operation", ["update_table", "delete_segment", "remove_keys"])
def test_a_deletion_that_the_store_refuses_is_told_and_finished_by_the_next_creation(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    broker = client.broker
    client.declare(1, "s")
    client.publish(1, (1, b"a"))
    broker.settle("s")
    segment = names.data_segment("/", "s", broker.stream("s").entry.generation)

    with monkeypatch.context() as patch:
        refuse(patch, broker, operation)
        done = client.start("delete_stream", m.DeleteStream("s"))
        client.finish(done)
        assert [each.command.name for each in client.received()[-2:]] == [
            "delete_stream",
            "metadata_update",
        ]
        assert client.answer_to("delete_stream") == m.Status(ResponseCode.INTERNAL_ERROR)
        assert client.link.publishers == {}
        refused = client.code("create_stream", m.CreateStream("s", {}))
        assert refused == ResponseCode.INTERNAL_ERROR
    client.create("s")

    assert not has_segment(broker, segment)
    generation = broker.stream("s").entry.generation
    assert catalogued(broker) == [("s", generation, "live")]


# Deletions that a crash cut short


@pytest.fixture
def half_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which the deletion of "s" has begun."""
    broker = Broker(tmp_path / "data")
    client = broker.link()
    client.create("s", "other")
    client.declare(1, "s")
    client.publish(1, (1, b"a"))
    broker.settle("s")
    with monkeypatch.context() as patch:
        refuse(patch, broker, "delete_segment")
        client.tell("delete_stream", m.DeleteStream("s"))
    broker.close()
    return tmp_path / "data"


def test_an_opening_that_cannot_finish_a_deletion_goes_on_and_it_is_tried_again(
    half_deleted: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:

        def fail(*_: object, done: Callable[[StoreError], None], **_options: object) -> None:
            done(DiskFull("for the test"))

        patch.setattr(LocalStore, "delete_segment", fail)
        broker = Broker(half_deleted)
        assert len(broker.streams) == 1
        broker.log("other")
        broker.store_rig.run(broker.streams.retry_deletions())
        assert [each[2] for each in catalogued(broker) if each[0] == "s"] == ["deleting"]
        assert "streams not deleted virtual_host=/ streams=['s']" in caplog.text

    broker.store_rig.run(broker.streams.retry_deletions())

    assert [each[0] for each in catalogued(broker)] == ["other"]
    broker.store_rig.run(broker.streams.retry_deletions())
    broker.link().create("s")
    broker.close()


def test_an_opening_finishes_a_deletion(half_deleted: Path) -> None:
    broker = Broker(half_deleted)

    assert [each[0] for each in catalogued(broker)] == ["other"]
    broker.close()


def test_the_log_says_nothing_bad_of_a_deleted_stream(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    client.declare(1, "s")
    client.broker.settle("s")
    client.publish(1, (1, b"a"))
    client.tell("delete_stream", m.DeleteStream("s"))
    client.broker.loop.run_for(0.05)

    assert [each.message for each in caplog.records if each.levelname != "INFO"] == []


def test_a_failed_stream_is_in_the_log_once(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    log = client.broker.log("s")

    log.fail(DiskFull("for the test"))
    log.fail(DiskFull("for the test"))

    errors = [each.message for each in caplog.records if each.levelname == "ERROR"]
    assert errors == ["stream failed stream=s virtual_host=/ error=for the test unsaid=0"]


def test_where_there_is_no_room_to_note_a_deletion_the_data_goes_first(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = client.broker.store_rig.store
    deleted: list[str] = []

    def full_until_deleted(
        update: Callable[..., None],
        *arguments: object,
        done: Callable[[Any], None],
        **options: Any,  # noqa: ANN401 - handed on
    ) -> None:
        if deleted:
            update(*arguments, done=done, **options)
        else:
            done(DiskFull("for the test"))

    def noted(delete: Callable[..., None], name: str, *, done: Callable[[Any], None]) -> None:
        deleted.append(name)
        delete(name, done=done)

    wrap_operation(monkeypatch, store, "update_table", full_until_deleted)
    wrap_operation(monkeypatch, store, "delete_segment", noted)
    assert client.code("delete_stream", m.DeleteStream("s")) == ResponseCode.OK
    assert catalogued(client.broker) == []
