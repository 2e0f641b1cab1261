"""The file of projections: what it may say, and which line is told of what it may not."""

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from gateway.mewbase.binders import projections_file
from gateway.mewbase.binders.projections_file import (
    BadProjections,
    functions_of,
    read_projections,
)

ONE = """
[[projections]]
name = "one"
channel = "orders"
binder = "by_customer"
id = "customer"
"""
PATH_WORDS = "names with dots between them; {field} stands for a field's value"
PYTHON = ONE + 'mode = "python"\nfunction = "f"\n'


def read(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    return [projection.name for projection in read_projections(path)]


def test_projections_are_read_in_order(tmp_path: Path) -> None:
    two = ONE.replace("one", "two") + 'mode = "merge"\nfrom = "now"\n'
    assert read(tmp_path / "p.toml", ONE + two) == ["one", "two"]
    (_, second) = read_projections(tmp_path / "p.toml")
    assert (second.mode, second.start, second.channel) == ("merge", "now", "orders")
    assert read(tmp_path / "empty.toml", "") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[projections]", "is not TOML: "),
        ("x = 1", "there may be tables [[projections]], and nothing else"),
        ("projections = 1", "there may be tables [[projections]], and nothing else"),
        ("projections = [1]", "projection 1: it is 1, and has to be a table"),
        (ONE + ONE, "2 projections have the name 'one'"),
        (ONE + 'mode = ""\n', "projection 1: `mode` is empty"),
        (ONE.replace('"one"', '"' + "n" * 256 + '"'), "projection 1: `name` has more than 255 cha"),
        (ONE + "quantity = 7\n", "projection 1: `quantity` is 7, and has to be a text"),
        (ONE + 'path = "a"\n', "projection 1: mode replace takes no `path`"),
        (ONE + 'mode = "python"\n', "projection 1: mode python needs `function`"),
        (ONE + 'x = "a"\n', "projection 1: `x` is unknown"),
        (
            ONE + 'mode = "sum"\nfunction = "f"\n',
            "projection 1: `mode` is 'sum', and not one of replace, merge, add, python",
        ),
        (ONE + 'from = "last"\n', "projection 1: `from` is 'last', and not one of first, now"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadProjections) as caught:
        read(tmp_path / "p.toml", text)
    (told,) = [each for each in caught.value.problems if each.startswith(problem)]
    assert "\n" not in told


@pytest.mark.parametrize("key", ["id", "quantity", "path"])
@pytest.mark.parametrize(
    "path", [".", "..", "...", "{", "}", "a.{", ".a", "a.", "a..b", "a\\u0000"]
)
def test_a_path_that_leads_nowhere_is_told_at_the_start(
    tmp_path: Path, key: str, path: str
) -> None:
    given = {"id": "a", "path": "a", "quantity": "a"} | {key: path}
    lines = "".join(f'{name} = "{value}"\n' for name, value in given.items())
    text = ONE.replace('id = "customer"\n', "") + 'mode = "add"\n' + lines
    if key != "path" and path in {"{", "}", "a.{"}:
        assert read(tmp_path / "p.toml", text) == ["one"], "a field may have such a name"
        return
    with pytest.raises(BadProjections, match=f"projection 1: `{key}` is .*names with dots") as told:
        read(tmp_path / "p.toml", text)
    assert len(told.value.problems) == 1


@pytest.mark.parametrize("path", ["{}", "{.}", "a.{b", "a.{b..c}", "{a}}", "{{a}}"])
def test_braces_hold_the_name_of_a_field(tmp_path: Path, path: str) -> None:
    text = ONE + f'mode = "add"\nquantity = "n"\npath = "{path}"\n'
    with pytest.raises(BadProjections, match=r"`path` is .*, and has to be names with dots"):
        read(tmp_path / "p.toml", text)


@pytest.mark.parametrize("path", ["a", "a.b", "{a}", "{a.b}", "x{a}y.{b}{c}", "a b.\xe9"])
def test_a_path_has_names_and_fields(tmp_path: Path, path: str) -> None:
    text = ONE + f'mode = "add"\nquantity = "n.m"\npath = "{path}"\n'
    assert read(tmp_path / "p.toml", text) == ["one"]


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    first = ONE.replace("channel", "chanel") + 'mode = "add"\npath = "."\nfrom = 7\n'
    second = ONE.replace('binder = "by_customer"', 'binder = ""') + 'mode = "add"\n'
    with pytest.raises(BadProjections) as caught:
        read(tmp_path / "p.toml", first + second)
    assert caught.value.problems == (
        "projection 1: `chanel` is unknown; did you mean `channel`?",
        "projection 1: `channel` is missing",
        "projection 1: `from` is 7, and has to be a text",
        "projection 1: mode add needs `quantity`",
        "projection 1: `path` is '.', and has to be " + PATH_WORDS,
        "projection 2: `binder` is empty",
        "projection 2: mode add needs `path`",
        "projection 2: mode add needs `quantity`",
        "2 projections have the name 'one'",
    )


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadProjections, match="cannot be read: No such file"):
        read_projections(tmp_path / "none.toml")


def test_functions_are_loaded_from_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.toml").write_text(PYTHON + PYTHON.replace("one", "two"))
    projections = read_projections(tmp_path / "p.toml")

    def points(value: str) -> None:
        found = EntryPoints([EntryPoint("f", value, projections_file.GROUP)])
        monkeypatch.setattr(projections_file, "entry_points", found.select)

    points("operator:or_")
    assert functions_of(projections)["f"](3, 4) == 7  # type: ignore[arg-type,comparison-overlap]
    points("operator:nothing")
    with pytest.raises(BadProjections, match="projection 'one': the function 'f' cannot be loaded"):
        functions_of(projections)


def test_functions_that_are_not_installed_are_named(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(PYTHON + PYTHON.replace("one", "two").replace('"f"', '"g"'))
    with pytest.raises(BadProjections) as caught:
        functions_of(read_projections(tmp_path / "p.toml"))
    words = "no installed package has an entry point {} in the group hutch.projections"
    assert caught.value.problems == (
        "projection 'one': " + words.format("'f'"),
        "projection 'two': " + words.format("'g'"),
    )
