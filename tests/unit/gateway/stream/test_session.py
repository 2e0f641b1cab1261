"""Which command is legal in which state: every command, every state, request and answer."""

import pytest

from gateway.stream.session import UNLIMITED_FRAME_BYTES, Session
from hutch.stream import messages as m
from hutch.stream import pipeline
from hutch.stream.codec import Decoded
from hutch.stream.commands import (
    BY_NAME,
    COMMANDS,
    ENDED,
    FAILED,
    STANDARD,
    Command,
    Sender,
    State,
)
from hutch.stream.errors import UnexpectedCommand

MIB = 1 << 20
STATES = list(State)
OVER = [State.CLOSING, State.DONE]
BEFORE_OPEN = [state for state in State.ANY if state is not State.OPEN]

LEGAL_BEFORE_OPEN: dict[str, set[State]] = {
    "peer_properties": {State.CONNECTED, State.IDENTIFIED},
    "sasl_handshake": {State.IDENTIFIED, State.AUTHENTICATING},
    "sasl_authenticate": {State.AUTHENTICATING},
    "tune": {State.TUNING, State.TUNED},
    "open": {State.TUNING, State.TUNED},
    "heartbeat": set(BEFORE_OPEN),
}
"""Everything else is legal once the connection is open, and not before."""

ONLY_BEFORE_OPEN = {"peer_properties", "sasl_handshake", "tune", "open"}
ANSWERED_OUT_OF_ORDER = {"peer_properties", "sasl_handshake", "sasl_authenticate"}


def session(
    state: State = State.CONNECTED,
    *,
    frame_bytes_max: int = MIB,
    initial_frame_bytes_max: int = 8192,
) -> Session:
    made = Session(frame_bytes_max, initial_frame_bytes_max, heartbeat_s=60)
    made.state = state
    return made


def decoded(command: Command, *, is_response: bool = False) -> Decoded:
    return Decoded(command, 1, is_response, 1, m.Heartbeat())


def is_legal(command: Command, state: State) -> bool:
    if state is State.OPEN:
        return command.name not in ONLY_BEFORE_OPEN
    return state in LEGAL_BEFORE_OPEN.get(command.name, set())


from_client = [command for command in COMMANDS if Sender.CLIENT in command.sender]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
@pytest.mark.parametrize("command", from_client, ids=lambda command: command.name)
def test_a_request_is_legal_in_its_states_and_in_no_other(command: Command, state: State) -> None:
    made = session(state)
    if is_legal(command, state):
        assert made.check(decoded(command))
    elif state in BEFORE_OPEN + OVER and command.name in ANSWERED_OUT_OF_ORDER:
        assert not made.check(decoded(command))
    else:
        with pytest.raises(UnexpectedCommand) as caught:
            made.check(decoded(command))
        assert caught.value.name == command.name
        assert state.name is not None
        assert caught.value.state == state.name.lower()
    assert made.state is state


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_an_answer_is_legal_only_to_what_the_server_asks(command: Command, state: State) -> None:
    asked = {
        "tune": {State.TUNING, State.TUNED},
        "consumer_update": {State.OPEN},
    }.get(command.name, set())
    made = session(state)

    if state in asked:
        assert made.check(decoded(command, is_response=True))
    else:
        with pytest.raises(UnexpectedCommand):
            made.check(decoded(command, is_response=True))


def test_an_error_names_no_state_that_does_not_exist() -> None:
    with pytest.raises(UnexpectedCommand, match="close is not allowed while the connection is tun"):
        session(State.TUNING).check(decoded(BY_NAME["close"]))


# Where it leads

WAY = {
    "peer_properties": State.IDENTIFIED,
    "sasl_handshake": State.AUTHENTICATING,
    "sasl_authenticate": State.TUNING,
    "tune": State.TUNED,
    "open": State.OPEN,
    "close": State.DONE,
}
"""All other commands, and the renewal of the secret, leave the connection where it is."""


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_leads_where_its_row_says_or_is_refused(command: Command, state: State) -> None:
    made = session(state)
    is_renewal = command.name == "sasl_authenticate" and state is State.OPEN

    if is_legal(command, state):
        made.advance(command)
        assert made.state is (state if is_renewal else WAY.get(command.name, state))
    else:
        with pytest.raises(UnexpectedCommand):
            made.advance(command)
        assert made.state is state


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_what_the_client_breaks_is_told_by_a_close_once_it_is_open(state: State) -> None:
    made = session(state)

    made.fail()

    assert made.is_closing is (state in (State.OPEN, State.CLOSING))
    assert made.is_done is not made.is_closing


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_the_end_may_come_at_any_time(state: State) -> None:
    made = session(state)

    made.end()

    assert made.is_done


def test_every_step_leads_to_a_single_state() -> None:
    for steps in (*(row.steps for row in COMMANDS), FAILED, ENDED):
        assert set(steps) | set(steps.values()) <= set(State)


# Sizes


@pytest.mark.parametrize(
    ("initial", "configured", "limit"),
    [(8192, MIB, 8192), (8192, 0, 8192), (0, MIB, MIB), (8192, 4096, 4096), (MIB, 4096, 4096)],
)
def test_before_open_the_smaller_of_both_limits_counts_and_0_is_none(
    initial: int, configured: int, limit: int
) -> None:
    made = session(initial_frame_bytes_max=initial, frame_bytes_max=configured)

    assert made.frame_limit == limit


def test_no_limit_at_all_is_still_one() -> None:
    made = session(initial_frame_bytes_max=0, frame_bytes_max=0)
    assert made.frame_limit == UNLIMITED_FRAME_BYTES

    made.tune(0, 60)
    made.enter("/")

    assert made.frame_limit == UNLIMITED_FRAME_BYTES


@pytest.mark.parametrize(
    ("server", "client", "limit"),
    [
        (MIB, MIB, MIB),
        (MIB, 0, MIB),
        (0, MIB, MIB),
        (MIB, 2 * MIB, MIB),
        (MIB, 1000, 1000),
        (MIB, 1, 1),
        (0, 2**32 - 1, UNLIMITED_FRAME_BYTES),
    ],
)
def test_after_open_the_smaller_word_counts_and_not_before(
    server: int, client: int, limit: int
) -> None:
    made = session(frame_bytes_max=server)
    before = made.frame_limit

    made.tune(client, 60)
    assert made.frame_limit == before
    made.enter("/")

    assert made.frame_limit == limit


def test_a_second_tune_replaces_the_first() -> None:
    made = session()

    made.tune(1000, 5)
    made.tune(0, 7)
    made.enter("/")

    assert (made.frame_limit, made.heartbeat_s) == (MIB, 7)


# Steps


@pytest.mark.parametrize("heartbeat_s", [0, 1, 60, 4_294_967])
def test_the_heartbeat_is_the_one_that_the_client_says(heartbeat_s: int) -> None:
    made = session()

    made.tune(MIB, heartbeat_s)

    assert made.heartbeat_s == heartbeat_s


def test_a_virtual_host_is_entered_once_and_for_all() -> None:
    made = session(State.TUNED)
    assert not made.has_entered

    made.enter("/")
    made.end()

    assert (made.has_entered, made.virtual_host) == (True, "/")


def test_chunks_are_delivered_in_version_1_until_the_client_says_more() -> None:
    assert session().deliver_version == 1


def test_a_client_gets_the_commands_that_its_properties_ask_for() -> None:
    session = Session(0, 0, 60)
    assert session.table is STANDARD

    session.greet({"hutch.pipeline": "1", "product": "test"})
    assert session.table is pipeline.TABLE

    session.greet({"product": "test"})
    assert session.table is STANDARD
