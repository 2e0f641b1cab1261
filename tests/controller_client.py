"""A client of the controller for tests: requests out, answers in, over a real channel of gRPC."""

from __future__ import annotations

import base64
from types import TracebackType
from typing import Any, Final, Self

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gateway.pravega.controller.rpc import controller_pb2 as pb
from tests.waiting import HANG_S

SERVICE: Final = pb.DESCRIPTOR.services_by_name["ControllerService"]


def basic(name: str, password: str) -> str:
    """Return the `authorization` of a user."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class ControllerClient:
    """One channel, whose calls all have the same `authorization`, or none."""

    def __init__(self, port: int, authorization: str | None = None) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._metadata = () if authorization is None else (("authorization", authorization),)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    def ask(self, name: str, request: Message) -> Any:  # noqa: ANN401  # the answer is as the call is
        """Make a call; return its answer. Raises grpc.RpcError."""
        method = SERVICE.methods_by_name[name]
        call = self._channel.unary_unary(
            f"/{SERVICE.full_name}/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return call(request, metadata=self._metadata, timeout=HANG_S)

    def refusal(self, name: str, request: Message) -> grpc.StatusCode:
        """Make a call that is refused; return the status."""
        try:
            answer = self.ask(name, request)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
        raise AssertionError(answer)
