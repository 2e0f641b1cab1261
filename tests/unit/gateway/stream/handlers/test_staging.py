import pytest

from gateway.broker.access.model import Permission
from gateway.stream.wire import messages as m
from gateway.stream.wire import pipeline_messages as p
from gateway.stream.wire.codes import ResponseCode
from tests.unit.gateway.stream.link_rig import Broker

REQUESTS: dict[str, tuple[m.Message, str]] = {
    "open_stage": (p.OpenStage("q", 1, "s"), "a stage for stream 's'"),
    "stage": (p.StageRecords(5, 0, 1, 1, b"\0\0\0\1x"), "stage 5"),
    "close_stage": (p.CloseStage(5), "stage 5"),
    "commit_stages": (p.CommitStages("q", 1, (5,)), "a commit of sink 'q'"),
    "discard_stages": (p.DiscardStages((5,)), "discarding stages"),
    "sink_state": (p.SinkState("q"), "sink 'q'"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_staging_is_refused_with_its_reason(broker: Broker, name: str) -> None:
    request, what = REQUESTS[name]

    answer = broker.link(has_pipeline=True).request(name, request)

    code, reason = answer.code, answer.reason  # type: ignore[attr-defined]  # all answers have them
    assert (code, reason) == (ResponseCode.PRECONDITION_FAILED, f"{what}: not served yet")


def test_a_stage_takes_the_right_to_write_to_its_stream(broker: Broker) -> None:
    denied = Permission(user="guest", virtual_host="/", configure="", write="^t$", read="")
    broker.store_rig.run(broker.access.put_permission(denied))

    request = p.OpenStage("q", 1, "s")
    answer = broker.link(has_pipeline=True).ask(p.StageOpened, "open_stage", request)

    assert answer == p.StageOpened(ResponseCode.ACCESS_REFUSED, "no write on 's'", 0)
