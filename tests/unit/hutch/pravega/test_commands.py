from dataclasses import fields
from typing import Any

import pytest

from hutch.pravega.commands import BY_CLASS, BY_CODE, COMMANDS, CommandCode, CommandSender
from hutch.pravega.layout import layout_of

each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda row: row.name)


def test_codes_stand_in_order_and_no_code_or_class_stands_twice() -> None:
    codes = [command.code for command in COMMANDS]

    assert codes == sorted(codes)
    assert len(BY_CODE) == len(BY_CLASS) == len(COMMANDS) == 68


@each_command
def test_a_row_is_found_by_its_code_and_by_its_class(command: CommandCode) -> None:
    assert BY_CODE[command.code] is command
    assert BY_CLASS[command.message] is command
    assert command.name == command.message.__name__


@each_command
def test_tokens_and_data_are_not_shown(command: CommandCode) -> None:
    message_class: Any = command.message
    shown = {each.name for each in fields(message_class) if each.repr}

    assert shown.isdisjoint({"token", "data", "event", "stack_trace"})
    assert shown <= {name for name, _ in layout_of(command.message).fields}


@pytest.mark.parametrize(
    ("codes", "sender"),
    [
        ((-127, 100), CommandSender.BOTH),
        ((-2, -1, 0, 1, 3, 4, 5, 9, 11, 20, 40, 41, 58, 72, 73, 88, 89, 90), CommandSender.CLIENT),
        ((2, 7, 8, 10, 21, 42, 50, 55, 61, 80, 81, 82, 87, 91), CommandSender.SERVER),
    ],
)
def test_a_command_is_that_of_its_side(codes: tuple[int, ...], sender: CommandSender) -> None:
    assert {BY_CODE[code].sender for code in codes} == {sender}
