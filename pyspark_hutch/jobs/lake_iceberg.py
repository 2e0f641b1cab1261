"""An Iceberg table as a place for batches, written by pyiceberg, its catalog a file of SQLite."""

from pathlib import Path
from typing import Final

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyspark.sql import DataFrame

from pyspark_hutch.jobs.batches import BatchName, Count
from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.lakes import gathered
from pyspark_hutch.jobs.sources import local

CATALOG: Final = "hutch"
CATALOG_FILE: Final = "catalog.db"
NAMESPACE: Final = "streams"
QUERY: Final = "hutch.query"
BATCH: Final = "hutch.batch"


class IcebergLake:
    """A table of the warehouse in a folder, whose catalog is the file `catalog.db` there.

    Query and number of a batch are properties of its snapshot. The number is also a property of the
    table, set by the same commit, since old snapshots may be expired.
    """

    def __init__(self, path: str, table: str) -> None:
        """Keep the place.

        Args:
            path: Folder of the warehouse.
            table: `namespace.name`.

        Raises:
            WrongArgument: One of them is none.
        """
        self._folder: Path = local(path)
        if len([part for part in table.split(".") if part]) != 2 or table.count(".") != 1:  # noqa: PLR2004
            raise WrongArgument(f"{table!r} is no name of a table: write namespace.name")
        self._name = table
        self._catalog: SqlCatalog | None = None

    def checkpoint(self, name: str) -> str:
        return str(self._folder / "_checkpoints" / self._name / name)

    def write(self, batch: DataFrame, name: BatchName) -> Count:
        mark = f"{BATCH}.{name.query}"
        held = self._table(None)
        if held is not None and int(held.properties.get(mark, -1)) >= name.number:
            return Count()
        rows, count = gathered(batch)
        if not count.rows:
            return count
        table = held or self._table(rows.schema)
        assert table is not None, "it was just made"
        with table.transaction() as change:
            change.append(rows, snapshot_properties={QUERY: name.query, BATCH: str(name.number)})
            change.set_properties({mark: str(name.number)})
        return count

    def _table(self, schema: pa.Schema | None) -> Table | None:
        """Return the table, which is made if a schema is given for it."""
        if self._catalog is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._catalog = SqlCatalog(
                CATALOG,
                uri=f"sqlite:///{self._folder / CATALOG_FILE}",
                warehouse=self._folder.as_uri(),
            )
        if schema is not None:
            self._catalog.create_namespace_if_not_exists(self._name.split(".")[0])
            return self._catalog.create_table_if_not_exists(self._name, schema)
        try:
            return self._catalog.load_table(self._name)
        except NoSuchTableError:
            return None
