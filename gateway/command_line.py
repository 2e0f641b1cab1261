"""Command lines: the complaint about a wrong one, and how to say it to a person."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

_CLOSE_MAX: Final = 3

VISIBLE: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    # Ends of lines and of paragraphs, what turns the direction of writing, half a character.
    **{code: f"\\u{code:04x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))},
    **{code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)},
}
"""Table for `str.translate`: a name from outside must not begin a line of its own, nor move the
cursor."""


def own_version() -> str:
    """Return the version of this program."""
    try:
        return version("hutch-streams")
    except PackageNotFoundError:  # run from the sources
        return "(not installed)"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question to put behind a wrong word; an empty text if nothing known is like it."""
    names = {_plain(name): name for name in known}
    close = [names[each] for each in get_close_matches(_plain(word), names, _CLOSE_MAX)]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _plain(word: str) -> str:
    return word.lower().replace("-", "_")


def visible(text: str) -> str:
    """Write a text from outside so that it cannot move a cursor or begin a line."""
    return text.translate(VISIBLE)


def complain(lines: str, status: int) -> int:
    """Write complaints to standard error, line by line; return the exit status."""
    for line in lines.splitlines():
        sys.stderr.write(f"hutch: {visible(line)}\n")
    return status


class Parser(argparse.ArgumentParser):
    """A parser that names words like a wrong one; its commands have parsers of this kind.

    Attributes:
        pointer: Says what to do in place of a command that there is not; empty if that is unknown.
    """

    pointer: Callable[[str], str] | None = None

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401  # argparse's
        """Check a value that is one of several. Raises ArgumentError, or ends the process."""
        if action.choices is None or value in action.choices:
            return
        meant = did_you_mean(str(value), action.choices)
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # has no other name
            names = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(action, f"{value!r} is none of {names}{meant}")
        told = f"there is no {str(action.metavar).lower()} {value!r}"
        if pointer := self.pointer and self.pointer(value):
            self.error(f"{told}: {pointer}")
        self.error(f"{told}{meant or ';'} `{self.prog} --help` lists them")

    def refuse(self, words: Sequence[str]) -> None:
        """End the process with a complaint about words that no argument takes."""
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        meant = "".join(did_you_mean(option, self._option_string_actions) for option in options)
        self.error(f"unrecognized arguments: {' '.join(words)}{meant}")
