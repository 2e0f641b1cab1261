"""A work: a row of the table, its sides, and the ratio that it must reach."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from compat.bench.servers import Server
from compat.spark_bench.rows import Rows

if TYPE_CHECKING:
    from compat.spark_bench.stage import Stage

Figure = Literal["rate", "cpu"]


def _nothing() -> None:
    """Clean up nothing."""


@dataclass(frozen=True, slots=True)
class Side:
    """One way to do a work.

    Attributes:
        title: What the table calls it.
        run: Does it once; this is what is timed.
        server: The server whose CPU time counts; None if there is none.
        prepare: Done before each run.
        clean: Done after each run.
    """

    title: str
    run: Callable[[], object]
    server: Server | None = None
    prepare: Callable[[], object] = _nothing
    clean: Callable[[], object] = _nothing


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers beside Spark; there may be no RabbitMQ."""

    hutch: Server
    rabbitmq: Server | None


Sides = Callable[["Stage", Servers], tuple[Side, ...]]


@dataclass(frozen=True, slots=True)
class Work:
    """One row of the table.

    Attributes:
        name: On the command line.
        title: In the table.
        rows: What is read or written.
        sides: Hutch's side, then the other if there is one.
        meaning: In a sentence.
        targets: What Hutch's figure over the other side's must be, by figure.
        needs_rabbitmq: Whether it cannot be done without.
    """

    name: str
    title: str
    rows: Rows
    sides: Sides
    meaning: str
    targets: tuple["Target", ...] = ()
    needs_rabbitmq: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A bound of Hutch's figure over the other side's: rates at least, CPU at most."""

    figure: Figure
    bound: float

    def is_reached(self, ratio: float) -> bool:
        """Return whether a ratio keeps it."""
        return ratio >= self.bound if self.figure == "rate" else ratio <= self.bound
