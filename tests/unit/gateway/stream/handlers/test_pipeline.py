import pytest

from gateway.stream.wire import messages as m
from gateway.stream.wire import pipeline_messages as p
from gateway.stream.wire.codes import ResponseCode
from tests.unit.gateway.stream.link_rig import Broker


@pytest.mark.parametrize(
    ("name", "request_"),
    [("describe_streams", p.DescribeStreams((), "")), ("plan_streams", p.PlanStreams(()))],
)
def test_it_is_refused_with_a_reason(broker: Broker, name: str, request_: m.Message) -> None:
    answer = broker.link(has_pipeline=True).request(name, request_)

    code, reason = answer.code, answer.reason  # type: ignore[attr-defined]  # both have them
    assert code == ResponseCode.PRECONDITION_FAILED
    assert reason.endswith("not served yet")
