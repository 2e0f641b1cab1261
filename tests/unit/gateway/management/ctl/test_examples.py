"""Examples in the help of commands, against a real broker: the server takes what they ask."""

import argparse
import io
import shlex
from contextlib import suppress

import pytest

from gateway.management.ctl.ctl import COMMANDS
from gateway.management.ctl.grammar import add
from gateway.management.errors import Conflict, NotFound
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker

EXAMPLES = [(name, words) for name, command in COMMANDS.items() for words in command.uses or [""]]


@pytest.mark.parametrize(("name", "words"), EXAMPLES)
def test_the_server_takes_what_an_example_asks(
    name: str, words: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    rig = Rig(broker)
    rig.ask("add_vhost", {"name": "orders"})
    command, parser = COMMANDS[name], argparse.ArgumentParser()
    add(parser, *command.arguments)
    asked = command.asks(parser.parse_args(shlex.split(words.partition(" < ")[0])))

    with suppress(NotFound, Conflict):  # all arguments are taken before anything is looked for
        command.shown(command.does(rig.ask, asked))
