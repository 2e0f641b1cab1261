"""Errors in the settings, with the names that the user wrote."""

from pathlib import Path
from typing import NamedTuple, Self


class Problem(NamedTuple):
    """One thing that is wrong with the configuration."""

    setting: str
    """The setting as the user wrote it: a flag, a variable, or a file and its key."""
    reason: str


class ConfigError(Exception):
    """The configuration cannot be used; holds all its problems, one line each."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(f"{setting}: {reason}" for setting, reason in problems))
        self.problems = problems

    @classmethod
    def in_file(cls, setting: str, path: Path | None, *problems: str) -> Self:
        """Return an error of faults in a file that a setting, "section.name", names."""
        return cls(*(Problem(setting, f"{path}: {problem}") for problem in problems))

    @classmethod
    def without_extra(cls, setting: str, what: str, extra: str) -> Self:
        """Return an error of a package that a setting needs; no release has it yet."""
        how = f"pip install '.[{extra}]' in the folder of the sources"
        return cls(Problem(setting, f"needs {what}, which is not installed: {how}"))
