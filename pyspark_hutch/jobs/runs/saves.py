"""Saves of a job's batches: each row once where the server has staged writing.

A batch has a name that it gets again after a kill. A save under that name publishes nothing if the
server has done it before.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from hutch.client.errors import ClientError
from pyspark_hutch.encoding.errors import EncodingError
from pyspark_hutch.jobs.errors import JobFailed
from pyspark_hutch.jobs.runs.batches import BatchName
from pyspark_hutch.names import planner_cluster
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.write_rules import write_settings
from pyspark_hutch.sink.plan import is_staged


def saves_once(options: Mapping[str, str], columns: Sequence[str]) -> bool:
    """Return whether a batch that is saved under its name is published once.

    Args:
        options: Of the write, as `writing` returns them.
        columns: Names of the columns of the rows.

    Raises:
        JobFailed: No server answers, or it lacks a command that the options need.
    """
    settings = write_settings(options, is_streaming=False)
    try:
        return is_staged(planner_cluster(settings.connection), settings, columns)
    except (ClientError, EncodingError, WrongOption) as error:
        raise JobFailed(str(error)) from None


def save(
    rows: DataFrame, options: Mapping[str, str], once: BatchName | None = None, part: str = ""
) -> None:
    """Write the rows of a batch.

    Args:
        rows: The rows.
        options: Of the write.
        once: The batch, if `saves_once`: the server leaves it out if it was published before.
        part: Tells apart the saves of one batch.
    """
    saving = rows.write.format("hutch").mode("append").options(**options)
    if once is not None:
        saving = saving.options(txnAppId=f"hutch-{once.query}{part}", txnVersion=str(once.number))
    saving.save()
