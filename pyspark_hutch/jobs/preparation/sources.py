"""The options with which a job reads and writes streams, checked before Spark is started."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.options.write_rules import write_settings

BUDGETS: Final = {"maxOffsetsPerTrigger": "500000", "maxBytesPerTrigger": "128m"}
"""Size of a batch: it fits into a driver of 1 GiB several times, and takes a few seconds."""

FROM_THE_FIRST: Final = {"startingOffsets": "earliest"}
_STARTS: Final = ("startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp")
_SOURCES: Final = ("stream", "superstream", "assign", "streampattern")
_NAME_CHARACTERS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Pace:
    """Settings for the run of a job.

    Attributes:
        checkpoint: Folder in which it notes how far it has come; None: where the job's own
            default is.
        is_continuous: Whether it goes on when all that there was has been done.
    """

    checkpoint: str | None = None
    is_continuous: bool = False


def reading(options: Mapping[str, str], *, budgets: Mapping[str, str] = BUDGETS) -> dict[str, str]:
    """Return the options of a job's read: those given, and the job's defaults for others.

    Raises:
        WrongArgument: They cannot be read with.
    """
    given = {name.lower() for name in options}
    found = dict(options)
    if not given.intersection(_STARTS):
        found |= FROM_THE_FIRST
    if not given.intersection(name.lower() for name in budgets):
        found |= budgets
    try:
        read_settings(found, is_streaming=True)
    except WrongOption as error:
        raise WrongArgument(str(error)) from None
    return found


def writing(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a job's write, each batch of which is a batch write.

    Raises:
        WrongArgument: They cannot be written with.
    """
    try:
        settings = write_settings(options, is_streaming=False)
    except WrongOption as error:
        raise WrongArgument(str(error)) from None
    if settings.transaction is not None:
        raise WrongArgument("option txnAppId: a job names and numbers its batches itself")
    return dict(options)


def name_of(options: Mapping[str, str]) -> str:
    """Return a name for a source, which can be a file's name and differs between sources."""
    lowered = {name.lower(): text for name, text in options.items()}
    texts = [lowered[key] for key in _SOURCES if key in lowered]
    text = texts[0] if texts else ""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in text)
    if name == text and len(name) <= _NAME_CHARACTERS_MAX and not name.startswith("."):
        return name
    return f"{name[:_NAME_CHARACTERS_MAX].lstrip('.')}-{sha256(text.encode()).hexdigest()[:8]}"


def fate_of(options: Mapping[str, str]) -> str:
    """Return the fate of sub-batches that cannot be opened, by the options of a read."""
    lowered = {name.lower(): text.lower() for name, text in options.items()}
    return lowered.get("badsubbatches", "fail")


def local(path: str) -> Path:
    """Return a folder of this machine as an absolute path.

    Raises:
        WrongArgument: It is on another kind of storage.
    """
    if "://" in path and not path.startswith("file://"):
        raise WrongArgument(f"{path} is not a folder of this machine")
    return Path(path.removeprefix("file://")).absolute()


def table_name(text: str) -> str:
    """Return the name of a table, `namespace.name`; raises WrongArgument if it is none."""
    if text.count(".") != 1 or not all(text.split(".")):
        raise WrongArgument(f"{text!r} is no name of a table: write namespace.name")
    return text
