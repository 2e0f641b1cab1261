"""A Delta table as a place for batches, written by delta-rs, without a jar."""

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from pyspark_hutch.jobs.lakes import TableLake
from pyspark_hutch.jobs.runs.batches import BatchName


class DeltaLake(TableLake):
    """A Delta table in a folder.

    The batch's number is noted as the version of an application transaction, in the same commit as
    its rows. The application is named for the query.
    """

    kind = "delta"

    def latest(self, query: str) -> int:
        if not DeltaTable.is_deltatable(self.folder):
            return -1
        version = DeltaTable(self.folder).transaction_version(_application(query))
        return -1 if version is None else version

    def append(self, rows: pa.Table, name: BatchName) -> None:
        mark = Transaction(_application(name.query), name.number)
        properties = CommitProperties(app_transactions=[mark])
        write_deltalake(self.folder, rows, mode="append", commit_properties=properties)


def _application(query: str) -> str:
    return f"hutch-{query}"
