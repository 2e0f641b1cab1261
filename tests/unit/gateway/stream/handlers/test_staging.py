from dataclasses import replace

import pytest

from gateway.broker.access.model import UserPermission
from gateway.broker.service import ScarceResource
from hutch.formats.chunk import HEADER_BYTES
from hutch.stream import messages as m
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from tests.unit.gateway.log.log_rig import encode
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

OK = ResponseCode.OK


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    client = broker.link(has_pipeline=True)
    client.create("s")
    return client


def _open(client: LinkRig, stream: str = "s", batch: int = 0) -> int:
    opened = client.ask(p.StageOpened, "open_stage", p.OpenStage("q", batch, stream))
    assert (opened.code, opened.reason) == (OK, None)
    return opened.stage


def _records(stage: int, *records: bytes, sequence: int = 0) -> p.StageRecords:
    data = b"".join(map(encode, records))
    return p.StageRecords(stage, sequence, len(records), len(records), data)


def _may_write(broker: Broker, pattern: str) -> None:
    granted = UserPermission(
        user="guest", virtual_host="/", configure=".*", write=pattern, read=".*"
    )
    broker.store_rig.run(broker.access.put_permission(granted))


def test_a_batch_is_staged_and_committed(client: LinkRig) -> None:
    stage = _open(client)
    done = p.StageFilled(OK, None, 0)
    assert client.ask(p.StageFilled, "stage", _records(stage, b"1", b"2")) == done
    assert client.ask(p.StageFilled, "stage", _records(stage, b"3", sequence=1)) == done
    closed = client.ask(p.StageClosed, "close_stage", p.CloseStage(stage))
    assert (closed.code, closed.records) == (OK, 3)
    assert closed.size_bytes > 3

    commit = p.CommitStages("q", 0, (stage,))
    first = client.ask(p.StagesCommitted, "commit_stages", commit)
    again = client.ask(p.StagesCommitted, "commit_stages", commit)

    assert (first.code, first.reason, first.number, first.is_repeat) == (OK, None, 1, False)
    assert (first.dropped, first.waiting) == ((), ())
    assert again == replace(first, is_repeat=True)
    assert client.broker.log("s").committed_next_offset == 3


def test_the_state_of_a_sink_is_its_last_batch(client: LinkRig) -> None:
    asked = p.SinkState("q")
    assert client.ask(p.SinkStateReply, "sink_state", asked) == p.SinkStateReply(OK, None, -1, 0)

    stage = _open(client, batch=7)
    client.tell("close_stage", p.CloseStage(stage))
    client.ask(p.StagesCommitted, "commit_stages", p.CommitStages("q", 7, (stage,)))

    assert client.ask(p.SinkStateReply, "sink_state", asked) == p.SinkStateReply(OK, None, 7, 1)


def test_stages_are_discarded_and_unknown_ones_passed_over(client: LinkRig) -> None:
    stage = _open(client)

    done = client.ask(p.Outcome, "discard_stages", p.DiscardStages((stage, 5, stage)))

    assert done == p.Outcome(OK, None)
    assert len(client.broker.virtual_host.commits.stages) == 0


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("stage", _records(5, b"x")),
        ("close_stage", p.CloseStage(5)),
        ("commit_stages", p.CommitStages("q", 1, (5,))),
    ],
)
def test_a_stage_that_is_not_there_is_named(
    client: LinkRig, name: str, request_: m.Message
) -> None:
    answer = client.request(name, request_)

    code, reason = answer.code, answer.reason  # type: ignore[attr-defined]  # all answers have them
    assert code == ResponseCode.PRECONDITION_FAILED
    assert reason.startswith("stage 5 is unknown")


def test_a_stream_that_is_not_there_is_named(client: LinkRig) -> None:
    answer = client.ask(p.StageOpened, "open_stage", p.OpenStage("q", 1, "t"))

    assert answer.code == ResponseCode.STREAM_DOES_NOT_EXIST
    assert answer.reason == "stream 't' does not exist"


def test_a_stage_takes_the_right_to_write_to_its_stream(broker: Broker, client: LinkRig) -> None:
    _may_write(broker, "^t$")

    answer = client.ask(p.StageOpened, "open_stage", p.OpenStage("q", 1, "s"))

    assert answer == p.StageOpened(ResponseCode.ACCESS_REFUSED, "no write on 's'", 0)


def test_the_commit_takes_the_right_again(broker: Broker, client: LinkRig) -> None:
    stage = _open(client)
    client.tell("close_stage", p.CloseStage(stage))
    _may_write(broker, "^t$")

    answer = client.ask(p.StagesCommitted, "commit_stages", p.CommitStages("q", 0, (stage,)))

    assert (answer.code, answer.reason) == (ResponseCode.ACCESS_REFUSED, "no write on 's'")


@pytest.mark.parametrize("more", [0, 1])
def test_what_comes_at_once_must_fit_a_chunk(client: LinkRig, more: int) -> None:
    bytes_max = client.broker.host.settings.chunk_bytes_max - HEADER_BYTES
    stage = _open(client)

    done = client.ask(p.StageFilled, "stage", _records(stage, b"x" * (bytes_max - 4 + more)))

    expected = ResponseCode.PRECONDITION_FAILED if more else OK
    assert done.code == expected
    assert not more or f"a chunk has {bytes_max}" in (done.reason or "")


@pytest.mark.parametrize("name", ["open_stage", "stage", "commit_stages"])
def test_a_client_waits_while_the_disk_alarm_is_set(client: LinkRig, name: str) -> None:
    requests: dict[str, m.Message] = {
        "open_stage": p.OpenStage("q", 0, "s"),
        "stage": _records(_open(client), b"x"),
        "commit_stages": p.CommitStages("q", 0, ()),
    }
    client.broker.service.set_alarm(ScarceResource.DISK)
    done = client.start(name, requests[name])
    client.ports.delays[0][1].settle(None)
    assert not done

    client.broker.service.clear_alarm(ScarceResource.DISK)
    client.ports.delays[1][1].settle(None)

    client.finish(done)
    assert client.answer_to(name).code == OK  # type: ignore[attr-defined]  # all answers have it


def test_a_client_that_goes_while_it_waits_leaves_no_stage(client: LinkRig) -> None:
    client.broker.service.set_alarm(ScarceResource.DISK)
    done = client.start("open_stage", p.OpenStage("q", 0, "s"))

    client.link.close()
    client.ports.delays[0][1].settle(None)

    client.finish(done)
    assert len(client.broker.virtual_host.commits.stages) == 0
