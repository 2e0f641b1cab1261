"""The values of readers by Pravega's Java client: read from its lines, and written down."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from compat.pravega.java import written
from compat.pravega.java.coverage import reason
from compat.pravega.java.expected import EXPECTED
from compat.pravega.java.methods import Client, Method, declared
from compat.pravega.java.program import NEWEST, OLDEST, parsed, played


def test_a_value_has_all_that_follows_the_first_equals_sign() -> None:
    lines = ["one of two=a=b\n", "one cut={events/0.0=12}\n", "two end=ok\n"]
    assert parsed(lines) == {
        "one": {"of two": "a=b", "cut": "{events/0.0=12}"},
        "two": {"end": "ok"},
    }


def test_lines_that_are_no_values_are_left_out() -> None:
    assert parsed(["", "SLF4J:", "a b\n", "one end=ok\n"]) == {"one": {"end": "ok"}}


def test_each_value_is_a_step_of_its_scenario() -> None:
    (step,) = played({"one": {"end": "ok"}})["one"]
    assert (step.label, step.lines) == ("end", ("ok",))


def test_what_is_written_is_read_again_and_other_scenarios_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written, "FOLDER", tmp_path)
    written.write("1", {"one": {"a b": "c", "end": "ok"}, "two": {"end": "ok"}})
    written.write("1", {"two": {"end": "hung"}})
    assert written.read("1") == {"one": {"a b": "c", "end": "ok"}, "two": {"end": "hung"}}


@pytest.mark.parametrize("version", [NEWEST, OLDEST])
def test_every_scenario_that_is_written_down_ended_well(version: str) -> None:
    values = written.read(version)
    assert [name for name, given in values.items() if given["end"] != "ok"] == []


def test_the_newest_client_has_every_scenario_of_the_oldest() -> None:
    assert written.read(OLDEST).keys() < written.read(NEWEST).keys()


@pytest.mark.parametrize("version", [NEWEST, OLDEST])
def test_every_meant_difference_is_one_from_a_value_that_is_written_down(version: str) -> None:
    values = written.read(version)
    for entry in [each for each in EXPECTED if version == NEWEST or each.script in values]:
        assert any(
            entry.theirs in value
            for key, value in values[entry.script].items()
            if fnmatchcase(key, entry.label)
        ), entry


SAID = """\
public interface io.pravega.client.Above<T> extends java.lang.AutoCloseable {
  public abstract void close();
    descriptor: ()V
  public static io.pravega.client.Above of(java.lang.String, int);
    descriptor: (Ljava/lang/String;I)Lio/pravega/client/Above;
}
public class io.pravega.client.Below implements io.pravega.client.Above<io.pravega.client.Below> {
  public io.pravega.client.Below();
    descriptor: ()V
}
class io.pravega.client.Hidden {
  public int hidden();
    descriptor: ()I
}
"""


def test_public_methods_are_read_with_their_classes_above() -> None:
    above: dict[str, frozenset[str]] = {}
    found = list(declared(SAID, above))

    assert found == [
        Method("io/pravega/client/Above", "close", "()"),
        Method("io/pravega/client/Above", "of", "(Ljava/lang/String;I)"),
        Method("io/pravega/client/Below", "<init>", "()"),
    ]
    assert above["io/pravega/client/Below"] >= {"io/pravega/client/Above"}


def test_a_call_by_the_name_of_a_class_below_reaches_the_method() -> None:
    above: dict[str, frozenset[str]] = {}
    client = Client(frozenset(declared(SAID, above)), above)
    call = Method("io/pravega/client/Below", "close", "()")

    assert [each.name for each in client.uncalled([call])] == ["of", "<init>"]
    assert client.uncalled(client.methods) == []


def test_methods_that_are_not_called_have_a_reason() -> None:
    assert reason(Method("io/pravega/client/stream/Position", "asImpl", "()")) != ""
    assert reason(Method("io/pravega/client/stream/Position", "other", "()")) == ""
