"""A job from the archive of `hutch pipeline zip`, among packages with names that ours have."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from hutch.client import FIRST
from hutch.client import Client as Reader
from hutch.formats.amqp.message import message_of
from pyspark_hutch.jobs.preparation.installed import java_trouble
from tests.integration.server import server_environment
from tests.spark.conftest import SPARK_SETTINGS, Place
from tests.spark.publishing import bodies_of, publish
from tests.spark_cluster.lean import lean_environment, without_paths
from tests.spark_cluster.standalone import HOME, environment

JOB: Final = """
import json, sys

import pyspark
import pyspark_hutch
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import client, gateway, pipeline, store

def work(number):
    import client, gateway, pipeline, store
    return str(client.step(gateway.step(pipeline.step(store.step(number)))))

options, source, target = json.loads(sys.argv[1])
spark = SparkSession.builder.appName("users own").getOrCreate()
spark.dataSource.register(pyspark_hutch.DefaultSource)
rows = spark.read.format("hutch").options(**options, stream=source).load()
worked = rows.select(udf(work, "string")("offset").alias("body"))
options_of_write = {**options, "stream": target, "createStream": "true"}
worked.write.format("hutch").options(**options_of_write).mode("append").save()
print("FOUND", json.dumps([pyspark.__version__, pyspark_hutch.__file__]))
spark.stop()
"""
USERS_OWN: Final = ("client", "gateway", "pipeline", "store")
COUNT: Final = 20
JOB_S: Final = 300
"""Workers compile what they load from an archive, each anew."""

pytestmark = pytest.mark.timeout(2 * JOB_S)


def test_a_job_from_the_archive_may_have_packages_of_any_name_but_two(
    place: Place, stream: str, tmp_path: Path
) -> None:
    trouble = java_trouble()
    if trouble is not None:
        pytest.skip(trouble)
    with place.client() as client:
        publish(client, stream, bodies_of(COUNT))
    folder = tmp_path / "job"
    own, archive = tmp_path / "own.zip", tmp_path / "hutch.zip"
    for name in USERS_OWN:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("def step(number):\n    return number + 1\n")
    with ZipFile(own, "w") as written:
        for name in USERS_OWN:
            written.write(folder / name / "__init__.py", f"{name}/__init__.py")
    (folder / "job.py").write_text(JOB)
    zipping = [sys.executable, "-m", "gateway", "pipeline", "zip", str(archive)]
    subprocess.run(zipping, check=True, env=server_environment(), cwd=tmp_path, timeout=JOB_S)
    settings = [word for item in SPARK_SETTINGS.items() for word in ("--conf", "=".join(item))]
    submit = [str(HOME / "bin" / "spark-submit"), "--master", "local[2]", *settings]
    target = f"{stream}-worked"
    given = json.dumps([place.options, stream, target])

    done = subprocess.run(
        [*submit, "--py-files", f"{archive},{own}", "job.py", given],
        cwd=folder,
        env=without_paths(environment(str(lean_environment(tmp_path / "lean")))),
        capture_output=True,
        text=True,
        timeout=JOB_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4_000:]
    found = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    spark, loaded = json.loads(found.removeprefix("FOUND "))
    assert spark == version("pyspark")
    assert "hutch.zip/pyspark_hutch/" in loaded
    with Reader(place.host, place.port) as reader:
        records = [record for _, record in islice(reader.subscribe(target, FIRST), COUNT)]
    bodies = [None if message is None else message.body for message in map(message_of, records)]
    wanted = [b"%d" % (number + len(USERS_OWN)) for number in range(COUNT)]
    assert [body for body in wanted if body not in bodies] == []
