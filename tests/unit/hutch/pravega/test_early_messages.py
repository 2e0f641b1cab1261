from dataclasses import fields
from typing import Any

import pytest

from hutch.pravega.commands import CommandCode, CommandSender
from hutch.pravega.early_codec import EARLY
from hutch.pravega.early_messages import EARLY_COMMANDS
from hutch.pravega.layout import layout_of

each_command = pytest.mark.parametrize("command", EARLY_COMMANDS, ids=lambda row: row.name)


def test_codes_stand_in_order_and_no_code_or_class_stands_twice() -> None:
    codes = [command.code for command in EARLY_COMMANDS]

    assert codes == [-2, 0, 1, 2, 3, 4, 5, 8, 9, 100]
    assert len(EARLY.by_code) == len(EARLY.by_class) == len(EARLY_COMMANDS)


@each_command
def test_data_is_not_shown_and_every_field_must_be_there(command: CommandCode) -> None:
    message_class: Any = command.message

    assert "data" not in {each.name for each in fields(message_class) if each.repr}
    assert layout_of(command.message).defaults == {}


def test_a_command_is_that_of_its_side() -> None:
    sides = {row.code: row.sender for row in EARLY_COMMANDS}

    assert {code for code, side in sides.items() if side == CommandSender.BOTH} == {-2, 100}
    assert {code for code, side in sides.items() if side == CommandSender.SERVER} == {2, 5, 9}
