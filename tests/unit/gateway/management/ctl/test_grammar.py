"""How commands are described: usages of arguments, and the requests that functions make."""

import argparse
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.broker.rules.policies import Policy
from gateway.management.ctl.grammar import (
    Argument,
    Ask,
    Asked,
    CtlCommand,
    WrongUse,
    argument,
    arguments_of,
    command,
    named,
)
from gateway.management.ctl.topology import set_policy
from gateway.management.fields import key_list
from gateway.management.kinds.policies import PolicyKind


def asked_of(made: CtlCommand, *words: str) -> Asked:
    parser = argparse.ArgumentParser()
    for each in made.arguments:
        parser.add_argument(*each.names, **each.options)
    return made.asks(parser.parse_args(words))


def taking(*arguments: Argument) -> CtlCommand:
    @command(*arguments)
    def look() -> None:
        """Look."""

    return look


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
    look = taking(
        named("user"),
        argument("--tags A,B", "h", read=key_list),
        argument("--number N", "h", type=int),
        argument("-q --quiet", "h"),
    )

    assert asked_of(look, "app") == {"name": "app"}
    assert asked_of(look, "app", "--tags", "a, b", "--number", "0", "-q") == {
        "name": "app",
        "tags": ["a", "b"],
        "number": 0,
    }


def test_a_function_without_parameters_asks_for_the_request_of_its_name() -> None:
    given: list[tuple[str, Asked]] = []

    def ask(name: str, asked: Asked) -> str:
        given.append((name, asked))
        return "seen"

    assert taking().does(ask, {"name": "n"}) == "seen"
    assert given == [("look", {"name": "n"})]


def test_the_docstring_of_a_command_is_its_help_and_begins_with_its_summary() -> None:
    @command(uses=("-x", ""))
    def look() -> None:
        """Look around.

        Far and
        wide.
        """

    assert look.help == "Look around.\n\nFar and\nwide."
    assert look.summary == "Look around"
    assert look.examples == ["hutch ctl look -x", "hutch ctl look"]


def test_an_answer_is_narrowed_to_the_columns_that_are_asked_for() -> None:
    given: list[tuple[str, Asked]] = []

    def answered(name: str, asked: Asked) -> list[dict[str, int]]:
        given.append((name, asked))
        return [{"a": 1, "b": 2}]

    @command()
    def look(ask: Ask, asked: Asked) -> list[dict[str, int]]:
        """Look."""
        return [each | {"c": 3} for each in ask("list", asked)]

    assert look.does(answered, {"name": "n"}) == [{"a": 1, "b": 2, "c": 3}]
    assert look.does(answered, {"name": "n", "columns": ["c", "a"]}) == [{"c": 3, "a": 1}]
    assert given == [("list", {"name": "n"})] * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Grown(Policy):
    """A policy with two fields more than those that the commands describe."""

    owned_by: str = ""
    sample: float = 1


class GrownKind(PolicyKind):
    thing = Grown


def test_a_field_that_is_added_to_a_kind_is_an_option_without_a_change_to_the_commands() -> None:
    known = [each for each in set_policy.arguments if each.dest != "virtual_host"]
    grown = taking(*arguments_of(GrownKind(), *known))

    asked = asked_of(grown, "p", "^s", '{"a": 1}', "--owned-by", "me", "--sample", "0.5")

    assert asked == {
        "name": "p",
        "pattern": "^s",
        "definition": {"a": 1},
        "apply_to": "streams",
        "priority": 0,
        "owned_by": "me",
        "sample": 0.5,
    }
    assert asked_of(grown, "p", "^s", "{}").keys() == {
        field.name for field in dataclasses.fields(Policy)
    }
    with pytest.raises(WrongUse, match="is not JSON"):
        asked_of(grown, "p", "^s", "{}", "--sample", "x")
