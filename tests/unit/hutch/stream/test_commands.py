from hutch.stream.commands import (
    BY_NAME,
    COMMANDS,
    KERNEL,
    STANDARD,
    Permission,
    Sender,
    State,
)
from hutch.stream.layout import layout_of


def test_there_are_31_commands_in_the_order_of_their_keys() -> None:
    assert [command.key for command in COMMANDS] == list(range(1, 32))


def test_a_command_is_found_by_name() -> None:
    assert len(BY_NAME) == 31
    for command in COMMANDS:
        assert BY_NAME[command.name] is command


def test_names_are_fit_for_handlers_and_metrics() -> None:
    assert all(name.isidentifier() and name.islower() for name in BY_NAME)


def test_every_command_has_a_layout_for_each_of_its_versions() -> None:
    two = {command.name for command in COMMANDS if command.version_max == 2}

    assert two == {"publish", "deliver"}
    assert all(command.version_max in {1, 2} for command in COMMANDS)
    assert {command.name for command in COMMANDS if KERNEL in command.requests} == two


def test_an_answer_has_a_code_but_for_metadata_and_tune() -> None:
    without = {
        command.name
        for command in COMMANDS
        if command.reply is not None
        and "code" not in [name for name, _ in layout_of(command.reply).fields]
    }

    assert without == {"metadata", "tune"}


def test_only_what_is_correlated_is_answered_but_for_credit_and_tune() -> None:
    answered = {command.name for command in COMMANDS if command.reply is not None}
    correlated = {command.name for command in COMMANDS if command.is_correlated}

    assert answered - correlated == {"credit", "tune"}
    assert correlated - answered == set()


def test_the_server_starts_these_commands() -> None:
    server = {command.name for command in COMMANDS if Sender.SERVER in command.sender}

    assert server == {
        "publish_confirm",
        "publish_error",
        "deliver",
        "metadata_update",
        "tune",
        "close",
        "heartbeat",
        "consumer_update",
    }


def test_the_exchange_of_versions_lists_20_commands_in_the_order_of_the_reference() -> None:
    keys = "01 02 05 06 07 09 0a 0b 0c 0d 0e 0f 16 17 18 19 1c 1d 1e 1f"

    assert " ".join(f"{entry.key:02x}" for entry in STANDARD.versions) == keys
    assert all(entry.version_min == 1 for entry in STANDARD.versions)
    assert [entry.key for entry in STANDARD.versions if entry.version_max != 1] == [2]
    assert BY_NAME["publish"].version_max == STANDARD.versions[1].version_max == 2


def test_before_open_only_the_handshake_and_heartbeats_are_legal() -> None:
    early = {command.name for command in COMMANDS if set(command.steps) != {State.OPEN}}

    assert early == {
        "peer_properties",
        "sasl_handshake",
        "sasl_authenticate",
        "tune",
        "open",
        "heartbeat",
    }
    after = {name for name in early if State.OPEN in BY_NAME[name].steps}
    assert after == {"sasl_authenticate", "heartbeat"}


def test_any_state_is_every_state_but_the_end() -> None:
    assert set(State) == {*State.ANY, State.CLOSING, State.DONE}


def test_whatever_names_a_stream_needs_a_permission_or_was_permitted_before() -> None:
    free = {
        command.name
        for command in COMMANDS
        if command.permission is Permission.NONE
        and Sender.CLIENT in command.sender
        and any(
            name in {"stream", "super_stream", "streams"}
            for name, _ in layout_of(command.requests[0]).fields
        )
    }

    assert free == set()
