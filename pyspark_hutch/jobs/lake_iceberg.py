"""An Iceberg table as a place for batches, written by pyiceberg, its catalog a file of SQLite."""

from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from pyspark_hutch.jobs.lakes import SIGNS, TableLake
from pyspark_hutch.jobs.preparation.sources import table_name
from pyspark_hutch.jobs.runs.batches import BatchName

QUERY: Final = "hutch.query"
BATCH: Final = "hutch.batch"


class IcebergLake(TableLake):
    """A table of the warehouse in a folder, with the file `catalog.db` there as its catalog.

    Query and number of a batch are properties of its snapshot. The number is also a property of the
    table, set by the same commit, since old snapshots may be expired.
    """

    kind = "iceberg"

    def __init__(self, path: str, table: str) -> None:
        """Keep the place.

        Args:
            path: Folder of the warehouse.
            table: `namespace.name`.

        Raises:
            WrongArgument: One of them is none.
        """
        super().__init__(path)
        self._name = table_name(table)

    def checkpoint(self, name: str) -> str:
        return super().checkpoint(f"{self._name}/{name}")

    def table(self) -> Table | None:
        """Return the table; None before its first row."""
        try:
            return self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None

    def latest(self, query: str) -> int:
        table = self.table()
        return -1 if table is None else int(table.properties.get(f"{BATCH}.{query}", -1))

    def append(self, rows: pa.Table, name: BatchName) -> None:
        self._catalog.create_namespace_if_not_exists(self._name.split(".")[0])
        table = self._catalog.create_table_if_not_exists(self._name, rows.schema)
        number = str(name.number)
        with table.transaction() as change:
            change.append(rows, snapshot_properties={QUERY: name.query, BATCH: number})
            change.set_properties({f"{BATCH}.{name.query}": number})

    @cached_property
    def _catalog(self) -> SqlCatalog:
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / SIGNS[self.kind]
        return SqlCatalog("hutch", uri=f"sqlite:///{file}", warehouse=folder.as_uri())
