"""What a name or a line of source may not be."""

import re
import tomllib

from gateway.kernels import HOT_OBJECTS, KERNELS
from tests.tidy.sources import ROOT, SHIPPED, SOURCES, name_of

BANNED_MODULES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
# Written apart, so that this file does not find itself.
BANNED_WORDS = re.compile(r"\b(FIX" + r"ME|XX" + r"X)\b|\bTODO\b(?!\(#\d+\):)")
# A line that is nothing but a comment and would be a statement without its hash.
COMMENTED_CODE = re.compile(
    r"^\s*#\s*(def \w+\(.*\):|import \w+$|return \w+|print\(|assert \w+ ==)"
)


def test_modules_are_named_for_what_they_are() -> None:
    offenders = [
        name_of(path)
        for path in SOURCES
        if {path.stem, *path.relative_to(ROOT).parent.parts} & BANNED_MODULES
    ]

    assert offenders == []


def test_nothing_is_left_lying_about() -> None:
    offenders = [
        f"{name_of(path)}:{number} {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if BANNED_WORDS.search(line) or COMMENTED_CODE.search(line)
    ]

    assert offenders == []


def test_kernels_are_listed_alike_in_pyproject_in_the_code_and_on_the_disk() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extensions = project["tool"]["setuptools"]["ext-modules"]
    on_disk = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in SHIPPED
        for path in (ROOT / folder).rglob("kernel/*.py")
        if path.name != "__init__.py"
    )

    hot = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in SHIPPED
        for path in (ROOT / folder).rglob("*.pxd")
        if path.parent.name != "kernel"
    )

    assert sorted(extension["name"] for extension in extensions) == sorted(on_disk + hot)
    assert list(KERNELS) == on_disk
    assert list(HOT_OBJECTS) == hot
    for extension in extensions:
        assert extension["sources"] == [extension["name"].replace(".", "/") + ".py"]
    for name in KERNELS:
        assert (ROOT / name.replace(".", "/")).with_suffix(".pyi").exists()
