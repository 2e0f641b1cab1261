"""Many streams in one request, for pipelines: their places and sizes, and where to split them."""

from typing import NoReturn

from gateway.stream.link import Link
from gateway.stream.refusals import Refusal
from gateway.stream.wire import pipeline_messages as p
from gateway.stream.wire.codes import ResponseCode


async def describe_streams(_link: Link, _request: p.DescribeStreams) -> NoReturn:
    """Say where streams begin and end."""
    raise Refusal(ResponseCode.PRECONDITION_FAILED, "describing streams: not served yet")


async def plan_streams(_link: Link, _request: p.PlanStreams) -> NoReturn:
    """Say where ranges of streams can be split."""
    raise Refusal(ResponseCode.PRECONDITION_FAILED, "planning streams: not served yet")
