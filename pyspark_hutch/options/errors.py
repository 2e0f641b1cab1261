"""Errors about options: one line that names the option, its value, and the values allowed."""

from typing import Final

SHOWN_CHARACTERS_MAX: Final = 80  # of a value: enough to recognise it, short enough to read


class WrongOption(ValueError):
    """Options that cannot be used, each problem in its own words, all in one line.

    Attributes:
        problems: All faults, in the order of the table of options.
    """

    def __init__(self, *problems: str) -> None:
        assert problems, "an error says what is wrong"
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "; ".join(self.problems)


class Unfit(ValueError):
    """A value that an option does not take; the text is the reason, without name and value.

    An empty text stands for the `takes` of the option's kind.
    """


def shown(value: str) -> str:
    """Return a value as an error shows it: in quotes, on one line, cut when long."""
    if len(value) > SHOWN_CHARACTERS_MAX:
        value = value[: SHOWN_CHARACTERS_MAX - 1] + "…"
    return repr(value)
