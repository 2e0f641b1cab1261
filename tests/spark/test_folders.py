"""Java's own files lie in the folder of the test run, and go with it."""

import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_java_keeps_its_files_in_the_folder_of_the_run(spark: "SparkSession") -> None:
    (shown,) = spark.sql(
        "SELECT java_method('java.lang.System', 'getProperty', 'java.io.tmpdir') AS place"
    ).collect()

    assert shown.place == tempfile.gettempdir()
