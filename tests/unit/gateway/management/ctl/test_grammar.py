"""How commands are described: usages of arguments, and the requests that they make."""

import argparse
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.broker.policies import Policy
from gateway.management.ctl.grammar import (
    Argument,
    Asked,
    Command,
    WrongUse,
    argument,
    arguments_of,
    key_list,
    named,
)
from gateway.management.ctl.topology import COMMANDS
from gateway.management.kinds import Kind


def asked_of(command: Command, *words: str) -> Asked:
    parser = argparse.ArgumentParser()
    for each in command.arguments:
        parser.add_argument(*each.names, **each.options)
    return command.asks(parser.parse_args(words))


@pytest.mark.parametrize(
    ("made", "names", "dest", "options"),
    [
        (argument("name USER", "h"), ("name",), "name", {"metavar": "USER"}),
        (argument("--a-b -x TEXT", "h"), ("--a-b", "-x"), "a_b", {"metavar": "TEXT"}),
        (argument("-q --quiet", "h"), ("-q", "--quiet"), "quiet", {"action": "store_true"}),
        (argument("--by", "h", choices=("a",)), ("--by",), "by", {"choices": ("a",)}),
        (argument("--at TIME", "h", dest="ms"), ("--at",), "ms", {"metavar": "TIME", "dest": "ms"}),
    ],
)
def test_the_usage_of_an_argument_says_how_it_is_typed_and_what_the_request_calls_it(
    made: Argument, names: tuple[str, ...], dest: str, options: Mapping[str, Any]
) -> None:
    assert (made.names, made.dest) == (names, dest)
    assert dict(made.options) == {"help": "h", **options}


def test_a_named_thing_is_described_by_its_kind() -> None:
    stream = named("super stream", "source")

    assert (stream.dest, stream.options["metavar"]) == ("source", "SUPER_STREAM")
    assert stream.options["help"] == "name of the super stream"


def test_a_command_asks_with_all_that_was_given_as_it_is_read() -> None:
    arguments = (
        named("user"),
        argument("--tags A,B", "h", read=key_list),
        argument("--number N", "h", type=int),
        argument("-q --quiet", "h"),
    )
    command = Command("look", "look", arguments)

    assert asked_of(command, "app") == {"name": "app"}
    assert asked_of(command, "app", "--tags", "a, b", "--number", "0", "-q") == {
        "name": "app",
        "tags": ["a", "b"],
        "number": 0,
    }


def test_an_answer_is_narrowed_to_the_columns_that_are_asked_for() -> None:
    given: list[tuple[str, Asked]] = []

    def ask(name: str, asked: Asked) -> list[dict[str, int]]:
        given.append((name, asked))
        return [{"a": 1, "b": 2}]

    command = Command("look", "look", request="list", answered=lambda rows: [rows[0] | {"c": 3}])

    assert command.does(ask, {"name": "n"}) == [{"a": 1, "b": 2, "c": 3}]
    assert command.does(ask, {"name": "n", "columns": ["c", "a"]}) == [{"c": 3, "a": 1}]
    assert given == [("list", {"name": "n"})] * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Grown(Policy):
    """A policy with two fields more than those that the commands describe."""

    owned_by: str = ""
    sample: float = 1


def test_a_field_that_is_added_to_a_kind_is_an_option_without_a_change_to_the_commands() -> None:
    described = next(command for command in COMMANDS if command.name == "set_policy").arguments
    known = [each for each in described if each.dest != "virtual_host"]
    command = Command("set", "set", arguments_of(Kind("policy", Grown), *known))

    asked = asked_of(command, "p", "^s", '{"a": 1}', "--owned-by", "me", "--sample", "0.5")

    assert asked == {
        "name": "p",
        "pattern": "^s",
        "definition": {"a": 1},
        "apply_to": "streams",
        "priority": 0,
        "owned_by": "me",
        "sample": 0.5,
    }
    assert asked_of(command, "p", "^s", "{}").keys() == {
        field.name for field in dataclasses.fields(Policy)
    }
    with pytest.raises(WrongUse, match="is not JSON"):
        asked_of(command, "p", "^s", "{}", "--sample", "x")
