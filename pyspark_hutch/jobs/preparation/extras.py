"""Packages that a job needs beside the server's, and the extra that installs each."""

from importlib.util import find_spec
from typing import Final

from pyspark_hutch.jobs.errors import JobFailed

ARROW: Final = "pyarrow"
OF_SPARK: Final = ("pyspark", ARROW, "numpy")
DELTA: Final = "deltalake"
ICEBERG: Final = "pyiceberg"
SQLITE: Final = "sqlalchemy"  # what holds pyiceberg's catalog
PLOTS: Final = "matplotlib"

_EXTRAS: Final = dict.fromkeys(OF_SPARK, "spark") | dict.fromkeys(
    (DELTA, ICEBERG, SQLITE, PLOTS), "lakehouse"
)


def require(*packages: str) -> None:
    """Check that packages are installed, before anything that takes time is started.

    Raises:
        JobFailed: One is not; the line says which extra has it.
    """
    for package in packages:
        if find_spec(package) is None:
            raise JobFailed(
                f"{package} is not installed; this job needs it: "
                f'pip install ".[{_EXTRAS[package]}]" in the folder of the sources'
            )
