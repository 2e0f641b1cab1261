"""A Delta table as a place for batches, written by delta-rs, without a jar."""

from pathlib import Path
from typing import Final

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import DataFrame

from pyspark_hutch.jobs.batches import BatchName, Count
from pyspark_hutch.jobs.lakes import gathered
from pyspark_hutch.jobs.sources import local

APPLICATION: Final = "hutch"


class DeltaLake:
    """A Delta table in a folder.

    The batch's number is noted as the version of an application transaction, in the same commit as
    its rows. The application is named for the query.
    """

    def __init__(self, path: str) -> None:
        """Keep the path; raises WrongArgument if it is not of this machine."""
        self._folder: Path = local(path)

    def checkpoint(self, name: str) -> str:
        return str(self._folder / "_checkpoints" / name)

    def write(self, batch: DataFrame, name: BatchName) -> Count:
        application = f"{APPLICATION}-{name.query}"
        if self._version(application) >= name.number:
            return Count()
        table, count = gathered(batch)
        if count.rows:
            write_deltalake(
                str(self._folder),
                table,
                mode="append",
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(application, name.number)]
                ),
            )
        return count

    def _version(self, application: str) -> int:
        """Return the number of the last batch that was committed; -1 if none was."""
        if not DeltaTable.is_deltatable(str(self._folder)):
            return -1
        version = DeltaTable(str(self._folder)).transaction_version(application)
        return -1 if version is None else version
