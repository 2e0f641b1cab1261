"""Every command of RabbitMQ's tools is there, or leads somewhere."""

import re
from pathlib import Path

import pytest

from gateway import cli
from gateway.management.ctl.ctl import COMMANDS
from gateway.management.ctl.pointers import POINTERS, pointer_of

OF_RABBITMQ = Path(__file__).with_name("rabbitmq-4.3-commands.txt").read_text("ascii").split()
"""Commands of rabbitmqctl, -streams, -diagnostics, -queues, -plugins, -upgrade; those of
rabbitmqadmin by their first words."""


def test_every_command_of_rabbitmqs_tools_is_there_or_has_a_pointer() -> None:
    assert not [name for name in OF_RABBITMQ if name not in COMMANDS and not pointer_of(name)]
    assert not POINTERS.keys() & COMMANDS.keys(), "what is there needs no pointer"
    assert not POINTERS.keys() - set(OF_RABBITMQ), "RabbitMQ has no such command"


def test_a_pointer_is_found_by_either_spelling() -> None:
    assert pointer_of("list-queues") == pointer_of("list_queues") != ""
    assert pointer_of("nothing_like_it") == ""


NAMED = {line for text in POINTERS.values() for line in re.findall("`hutch (.*?)`", text)}


@pytest.mark.parametrize("line", sorted(NAMED))
def test_what_a_pointer_names_is_there(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["x" if word.isupper() else word for word in line.split()]
    with pytest.raises(SystemExit) as ended:
        cli.main([*words, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out
