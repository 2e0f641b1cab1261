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
    ("text", "words"),
    [
        ("[[projections]", "is not TOML"),
        ("x = 1", r"\[\[projections\]\], and nothing else"),
        ("projections = 1", r"\[\[projections\]\], and nothing else"),
        ("projections = [1]", "projection 1: "),
        (ONE + ONE, "two projections have the name 'one'"),
        (ONE + ONE.replace("channel", "chanel"), "projection 2: channel: Field required"),
        (ONE + 'mode = "add"\n', "projection 1: mode add needs `(path|quantity)`"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "p.toml"
    with pytest.raises(BadProjections, match=words) as caught:
        read(path, text)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
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


def test_a_function_that_is_not_installed_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(PYTHON)
    with pytest.raises(BadProjections, match=r"entry point 'f' in the group hutch\.projections"):
        functions_of(read_projections(tmp_path / "p.toml"))
