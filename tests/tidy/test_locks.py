"""What is installed was chosen before, and each file of it is known by its hash."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from compat.locks.__main__ import (
    LOCKS,
    OLDEST_SPARK,
    entries,
    lists,
    without_upper_bound,
)

ROOT = Path(__file__).parents[2]
WANTED = lists(tomllib.loads((ROOT / "pyproject.toml").read_text()))
LOCK_NAMES = [*WANTED, "oldest-spark"]


def lock(name: str) -> dict[str, list[str]]:
    return entries((LOCKS / f"{name}.txt").read_text())


@pytest.mark.parametrize("name", LOCK_NAMES)
def test_every_entry_of_a_lock_has_a_version_and_hashes_and_names_no_host(name: str) -> None:
    text = (LOCKS / f"{name}.txt").read_text()
    found = lock(name)

    assert text == "\n".join(each for some in found.values() for each in some) + "\n"
    for some in found.values():
        for entry in some:
            first, *rest = entry.replace(" \\\n", "\n").split("\n")
            assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.+]+( ; .+)?", first), first
            assert rest
            assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", each) for each in rest)


@pytest.mark.parametrize("name", WANTED)
def test_what_the_project_asks_for_is_locked_in_a_version_that_it_takes(name: str) -> None:
    there: dict[str, list[str]] = {}
    for each in list(WANTED)[: list(WANTED).index(name) + 1]:
        there |= lock(each)

    for text in WANTED[name]:
        wanted = Requirement(text)
        some = there.get(canonicalize_name(wanted.name), [])
        assert some, f"make lock: {text}"
        for entry in some:
            version = entry.split()[0].partition("==")[2]
            assert wanted.specifier.contains(version), f"make lock: {text}"


def test_the_oldest_spark_is_locked() -> None:
    (entry,) = lock("oldest-spark")["pyspark"]
    assert entry.startswith(OLDEST_SPARK + " ")


def test_the_newest_is_asked_for_without_upper_bounds() -> None:
    for text, asked in (
        ("h11>=0.16,<0.17", "h11>=0.16"),
        ("x~=1.2", "x"),
        (
            "x[more]>=2,!=2.1,<=3; sys_platform != 'win32'",
            'x[more]!=2.1,>=2; sys_platform != "win32"',
        ),
    ):
        assert without_upper_bound(text) == asked
    found = [Requirement(without_upper_bound(each)) for each in WANTED["run"]]
    assert all(each.specifier.contains("999") for each in found)


@pytest.mark.parametrize("path", ["Makefile", "compat/docker/Dockerfile", ".ci/run"])
def test_everything_that_is_installed_from_elsewhere_has_hashes(path: str) -> None:
    text = (ROOT / path).read_text().replace("$(LOCKED)", "--require-hashes")
    text = text.replace("$(PIP)", "pip install").replace("\\\n", " ")
    for part in re.split(r"\n|&&", text):
        if re.search(r"\bpip\b.* install\b", part) and "PIP    :=" not in part:
            is_ours = "--no-deps" in part and re.search(r" \.$| dist/\*\.whl| \. ", part)
            is_for_locks = part.rstrip().endswith("install uv")
            is_tried = "$(VENV)/newest/wanted.txt" in part  # newer than what has been locked
            assert "--require-hashes" in part or is_ours or is_for_locks or is_tried, part
