"""Words that docstrings and comments may not use."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tidy.sources import ROOT, SOURCES, name_of

CHECKED: Final = ("compat", "gateway", "hutch", "pyspark_hutch", "store")
"""Folders that keep the rules."""

BEGINNINGS: Final = re.compile(
    r"(What|Which|Who|Whom|Whose|Whether|How|Where|When|Why|Of|Tell|Give)\b"
)
BEGUN: Final = re.compile(rf"""["'][\s\\]*{BEGINNINGS.pattern}""")
"""Any string that begins so, a docstring or not."""
WORDS: Final = re.compile(
    r"\b(who|whom|whoever|(no|some|any|every)body|(some|any|every)one)\b", re.IGNORECASE
)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield each text that stands as a statement, with its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip()


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment, with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def offences(source: str) -> list[tuple[int, str]]:
    """Return the lines and texts of a source that break a rule."""
    if not (WORDS.search(source) or BEGUN.search(source)):
        return []  # without taking it apart, which takes a hundred times as long
    begun = [(line, text) for line, text in docstrings(source) if BEGINNINGS.match(text)]
    said = [
        (line, text)
        for line, text in (*docstrings(source), *comments(source))
        if WORDS.search(text)
    ]
    return sorted({*begun, *said})


def test_docstrings_begin_with_a_verb_or_a_noun_and_clients_are_called_clients() -> None:
    folders = [ROOT / folder for folder in CHECKED]

    offenders = [
        f"{name_of(path)}:{line} {text.splitlines()[0]}"
        for path in SOURCES
        if any(path.is_relative_to(folder) for folder in folders)
        for line, text in offences(path.read_text(encoding="utf-8"))
    ]

    assert offenders == []


def test_a_docstring_that_begins_with_a_question_is_found() -> None:
    source = '"""What a module is."""\n\n\ndef f() -> None:\n    """Tell whether it is."""\n'

    assert [line for line, _ in offences(source)] == [1, 5]


def test_a_client_that_is_called_who_is_found_in_docstrings_and_comments_alone() -> None:
    source = '"""Return who came."""\nx = "nobody"  # Somebody waits.\n# A person waits.\n'

    assert [line for line, _ in offences(source)] == [1, 2]


def test_every_checked_folder_exists() -> None:
    assert [folder for folder in CHECKED if not Path(ROOT, folder).is_dir()] == []
