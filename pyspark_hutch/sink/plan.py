"""The way that the rows of a write take: staged and committed, or published at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.encoding.messages import FILTER
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.write_settings import StreamWriteSettings
from pyspark_hutch.sink.targets import Targets, prepare


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The decisions of a write that need a server.

    Attributes:
        targets: The streams, found or made.
        is_staged: Whether rows are staged, and visible after the driver's commit.
    """

    targets: Targets
    is_staged: bool


def plan_write(
    cluster: Cluster, settings: StreamWriteSettings, columns: Sequence[str]
) -> WritePlan:
    """Find the targets of a write and decide how its rows go there.

    Args:
        cluster: The servers.
        settings: Of the write.
        columns: Names of the columns of its rows.

    Raises:
        WrongOption: The options ask for stages, and the server has none.
        Refused: A target does not exist, or cannot be made or used by this user.
        ClientError: No server answers.
    """
    staged = is_staged(cluster, settings, columns)
    return WritePlan(prepare(cluster, settings), staged)


def is_staged(cluster: Cluster, settings: StreamWriteSettings, columns: Sequence[str]) -> bool:
    """Return whether rows are staged; errors are those of `plan_write` and `may_be_staged`."""
    return may_be_staged(settings, columns) and _has_stages(cluster, settings)


def may_be_staged(settings: StreamWriteSettings, columns: Sequence[str]) -> bool:
    """Return whether options and columns let rows be staged.

    Raises:
        BadColumn: The options ask for stages, and a column has no place in one.
    """
    if settings.delivery not in {"auto", "staged"}:
        return False
    if FILTER not in columns:
        return True
    option = asks_for_stages(settings)
    if option:
        raise BadColumn(
            FILTER,
            f"cannot be written together with option {option}: staged rows have no filter values",
        )
    return False


def asks_for_stages(settings: StreamWriteSettings) -> str:
    """Return the option that asks for stages, as an error shows it; empty if none does."""
    if settings.delivery == "staged":
        return "delivery='staged'"
    if settings.transaction is not None:
        return f"txnAppId={settings.transaction.app_id!r}"
    return ""


def why_not_staged(settings: StreamWriteSettings, columns: Sequence[str]) -> str:
    """Return why a write that says nothing of its delivery is not staged, as a log line has it."""
    if settings.delivery != "auto":
        return ""
    if not may_be_staged(settings, columns):
        return f", since staged rows have no filter values, and there is a column {FILTER!r}"
    return ", since the server has no staged writing"


def _has_stages(cluster: Cluster, settings: StreamWriteSettings) -> bool:
    server = cluster.server()
    option = asks_for_stages(settings)
    if option and not server.has_pipeline:
        raise WrongOption(
            f"option {option}: {server.shown} has no staged writing, which needs Hutch; take "
            "delivery=dedup or none"
        )
    return server.has_pipeline
