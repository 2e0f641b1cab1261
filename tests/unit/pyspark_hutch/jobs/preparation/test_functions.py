import sys
from pathlib import Path

import pytest

from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.preparation.functions import named_function


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prices.py"
    path.write_text(
        "from dataclasses import dataclass\nHIGH = 1\ndef double(row):\n    return row * 2\n"
    )
    return path


def test_a_function_of_a_module_is_found() -> None:
    assert named_function("posixpath:basename").load()("a/b") == "b"


def test_a_function_of_a_file_is_found(file: Path) -> None:
    assert named_function(f"{file}:double").load()(4) == 8


def test_a_function_of_a_file_loads_on_a_machine_without_the_file(file: Path) -> None:
    named = named_function(f"{file}:double")
    file.unlink()

    assert named.load()(4) == 8


def test_a_file_hides_no_module_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "posixpath.py"
    path.write_text("def basename(row):\n    return 'mine'\n")

    assert named_function(f"{path}:basename").load()("a/b") == "mine"
    assert sys.modules["posixpath"].basename("a/b") == "b"


def test_a_module_is_loaded_once_in_a_process(tmp_path: Path) -> None:
    path = tmp_path / "counting.py"
    path.write_text("COUNT = []\ndef count():\n    COUNT.append(1)\n    return len(COUNT)\n")
    named = named_function(f"{path}:count")

    assert [named.load()(), named.load()()] == [1, 2]


@pytest.mark.parametrize("text", ["", "double", ":double", "prices.py", "prices.py:", "a:b c"])
def test_a_text_that_names_no_function_is_refused(text: str) -> None:
    with pytest.raises(WrongArgument, match=r"write module:function or file\.py:function"):
        named_function(text)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(WrongArgument, match=r"cannot read nowhere\.py"):
        named_function("nowhere.py:double")


def test_a_missing_module_is_named() -> None:
    with pytest.raises(WrongArgument, match="no_such_module_at_all"):
        named_function("no_such_module_at_all:double").load()


@pytest.mark.parametrize("name", ["triple", "HIGH"])
def test_a_missing_function_is_named(name: str, file: Path) -> None:
    with pytest.raises(WrongArgument, match=rf"prices\.py has no function '{name}'"):
        named_function(f"{file}:{name}").load()


def test_a_file_that_fails_is_named_with_its_error_each_time(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("raise ValueError('half')\n")
    named = named_function(f"{path}:f")

    for _ in range(2):
        with pytest.raises(WrongArgument, match="ValueError: half"):
            named.load()
