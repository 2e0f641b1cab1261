"""The words of a command line: options, which may stand anywhere before `--`, and the others."""

from __future__ import annotations

import re

from compat.suites.shim.asking import USAGE, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FLAG, TEXT, NUMBER = "flag", "text", "number"

EVERYWHERE: Mapping[str, str] = {
    "formatter": TEXT,
    "help": FLAG,
    "longnames": FLAG,
    "no-table-headers": FLAG,
    "node": TEXT,
    "quiet": FLAG,
    "silent": FLAG,
    "timeout": TEXT,
    "vhost": TEXT,
}
"""Options that every command takes."""
OWN: Mapping[str, str] = {
    "apply-to": TEXT,
    "binding-keys": TEXT,
    "partitions": NUMBER,
    "priority": NUMBER,
    "reference": TEXT,
    "stream": TEXT,
    "tracking": FLAG,
}
"""Options that some commands take."""
_KINDS = {**EVERYWHERE, **OWN}
_SHORT = {
    "-h": "help",
    "-l": "longnames",
    "-n": "node",
    "-p": "vhost",
    "-q": "quiet",
    "-s": "silent",
    "-t": "timeout",
}
_BELOW_ZERO = re.compile(r"-[0-9.]+")
_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")


class Words:
    """Words that were typed behind the tool's name.

    Attributes:
        plain: All that is neither an option nor an option's value.
        options: The others: values of options by their long names, empty for flags.
    """

    def __init__(self, typed: Sequence[str]) -> None:
        self.plain: list[str] = []
        self.options: dict[str, str] = {}
        left = list(reversed(typed))
        while left:
            word = left.pop()
            if word == "--":
                self.plain += reversed(left)
                return
            if word == "-" or not word.startswith("-") or _BELOW_ZERO.fullmatch(word):
                self.plain.append(word)
                continue
            self._take(word, left)

    def _take(self, word: str, left: list[str]) -> None:
        written, equals, value = word.partition("=")
        name = _SHORT.get(written, written[2:] if written.startswith("--") else "")
        kind = _KINDS.get(name)
        if kind is None or (kind == FLAG and equals):
            raise Failure(f"invalid options for this command: {word}", USAGE)
        if kind != FLAG and not equals:
            if not left or _is_option(left[-1]):
                raise Failure(f"invalid options for this command: {word} has no value", USAGE)
            value = left.pop()
        if kind == NUMBER and not _NUMBER.fullmatch(value):
            raise Failure(f"invalid options for this command: {written} : {value}", USAGE)
        self.options[name] = value

    def demand_only(self, own: Iterable[str]) -> None:
        """Demand that other options are a command's own or those of all. Raises Failure."""
        if wrong := self.options.keys() - EVERYWHERE.keys() - set(own):
            raise Failure(f"invalid options for this command: --{min(wrong)}", USAGE)

    def demand_count(self, fewest: int, most: int | None = None) -> None:
        """Demand that there are so many plain words. Raises Failure."""
        if len(self.plain) < fewest:
            raise Failure(f"not enough arguments: {fewest} are needed", USAGE)
        if len(self.plain) > (fewest if most is None else most):
            raise Failure("too many arguments", USAGE)

    def __contains__(self, option: str) -> bool:
        return option in self.options

    @property
    def is_quiet(self) -> bool:
        """Return whether to print only the requested rows."""
        return "quiet" in self or "silent" in self

    @property
    def has_titles(self) -> bool:
        """Return whether a table begins with the names of its columns."""
        return "silent" not in self and "no-table-headers" not in self

    @property
    def host(self) -> str:
        """Name of the virtual host that is meant."""
        return self.options.get("vhost", "/")

    def number(self, name: str, default: int) -> int:
        """Return the value of an option that is a number."""
        return int(self.options.get(name, default))


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not _BELOW_ZERO.fullmatch(word)
