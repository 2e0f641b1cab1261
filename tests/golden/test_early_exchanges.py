"""The page of the early dialect, played on a real server."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.settings.wire import EarlySettings
from hutch.pravega.codec import HEAD, HEAD_BYTES
from hutch.pravega.early_codec import EARLY
from hutch.pravega.early_messages import EARLY_COMMANDS
from tests.early_rig import serving_early
from tests.golden.early_exchanges import EXCHANGES, FRAMES, Exchange, Step


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda each: each.title)
def test_the_server_answers_as_the_page_says(exchange: Exchange, tmp_path: Path) -> None:
    settings = EarlySettings.model_validate(exchange.settings)
    with serving_early(tmp_path, settings) as server, ExitStack() as stack:
        client = first = stack.enter_context(server.early_client())
        for step in exchange.steps:
            match step.kind:
                case ">":
                    client.socket.sendall(step.frame)
                case "<":
                    assert client.receive_bytes(len(step.frame)) == step.frame, step.name
                case "closed":
                    assert client.is_ended()
                case "disconnect":
                    client.close()
                    client = stack.enter_context(server.early_client())
                case "other":
                    client = stack.enter_context(server.early_client())
                case "first":
                    client = first
        assert len(server.lines) == [step.kind for step in exchange.steps].count("closed")


@pytest.mark.parametrize("step", FRAMES, ids=lambda step: step.name)
def test_a_frame_is_the_message_that_the_page_names(step: Step) -> None:
    code, length = HEAD.unpack_from(step.frame)

    message = EARLY.decode(code, step.frame[HEAD_BYTES:])

    assert type(message).__name__ == step.name
    assert length == len(step.frame) - HEAD_BYTES
    assert EARLY.encode(message) == step.frame


def test_every_command_stands_in_an_exchange() -> None:
    assert {step.name for step in FRAMES} == {row.name for row in EARLY_COMMANDS}
    assert len(EXCHANGES) > 20
