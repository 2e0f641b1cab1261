from types import MappingProxyType

import pytest

from hutch.stream.codec import decode_request, encode_request
from hutch.stream.commands import COMMANDS, STANDARD, Permission, Sender, State
from hutch.stream.errors import UnknownCommand
from hutch.stream.layout import layout_of
from hutch.stream.pipeline import PIPELINE, PROPERTIES, PROPERTY, TABLE, SinkState, table_of


def test_there_are_8_commands_in_the_order_of_their_keys() -> None:
    assert [command.key for command in PIPELINE] == list(range(0x4800, 0x4808))


def test_a_session_with_them_speaks_the_standard_commands_too() -> None:
    assert TABLE.commands == COMMANDS + PIPELINE
    assert set(TABLE.by_name) == set(STANDARD.by_name) | {command.name for command in PIPELINE}


def test_each_is_a_question_of_an_open_client_in_one_version() -> None:
    for command in PIPELINE:
        assert command.sender is Sender.CLIENT
        assert command.is_correlated
        assert command.version_max == 1
        assert command.steps == {State.OPEN: State.OPEN}


def test_each_answer_begins_with_a_code_and_a_reason() -> None:
    for command in PIPELINE:
        assert command.reply is not None
        assert [name for name, _ in layout_of(command.reply).fields][:2] == ["code", "reason"]


def test_what_names_a_stream_to_read_or_to_write_takes_the_right() -> None:
    rights = {command.name: command.permission for command in PIPELINE}

    assert {name for name, right in rights.items() if right is Permission.READ} == {
        "describe_streams",
        "plan_streams",
    }
    assert {name for name, right in rights.items() if right is Permission.WRITE} == {
        "open_stage",
        "commit_stages",
    }


def test_the_exchange_of_versions_lists_them_behind_the_others() -> None:
    ours = TABLE.versions[len(STANDARD.versions) :]

    assert TABLE.versions[: len(STANDARD.versions)] == STANDARD.versions
    assert [entry.key for entry in ours] == [command.key for command in PIPELINE]
    assert {(entry.version_min, entry.version_max) for entry in ours} == {(1, 1)}


@pytest.mark.parametrize("value", ["1", "2", ""])
def test_a_client_with_the_property_gets_them_whatever_its_value(value: str) -> None:
    assert table_of({"product": "test", PROPERTY: value}) is TABLE


def test_any_other_client_does_not() -> None:
    assert table_of({"product": "test", "Hutch.Pipeline": "1"}) is STANDARD
    assert MappingProxyType({"hutch.pipeline": "1"}) == PROPERTIES


def test_without_them_their_keys_are_unknown() -> None:
    row = TABLE.by_name["sink_state"]
    frame = encode_request(row, SinkState("q"), correlation_id=7)[4:]

    assert decode_request(frame, TABLE).message == SinkState("q")
    with pytest.raises(UnknownCommand, match="0x4807"):
        decode_request(frame)
