"""What a name or a line of source may not be."""

import re

from gateway.kernels import KERNELS
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


def test_every_kernel_has_its_types_for_the_type_checker() -> None:
    missing = [
        name for name in KERNELS if not (ROOT / name.replace(".", "/")).with_suffix(".pyi").exists()
    ]

    assert missing == []


def test_types_for_the_compiler_stand_beside_a_module() -> None:
    alone = [
        name_of(types)
        for folder in SHIPPED
        for types in (ROOT / folder).rglob("*.pxd")
        if not types.with_suffix(".py").exists()
    ]

    assert alone == []
