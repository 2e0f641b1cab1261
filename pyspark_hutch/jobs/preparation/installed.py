"""Packages that a job needs beside the server's, and a Java that Spark can run on."""

import os
import re
import shutil
import subprocess
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


JAVA_MIN: Final = 17
"""Spark 4's own minimum."""

_ANSWER_S_MAX: Final = 60.0  # a cold start on a busy machine takes seconds
_VERSION: Final = re.compile(r'version "(\d+)')


def java_trouble() -> str | None:
    """Return in one line why there is no Java for Spark; None if there is one.

    Looks where Spark does: in `JAVA_HOME` if that is set, else on the `PATH`.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = shutil.which("java", path=os.path.join(home, "bin"))  # noqa: PTH118  # for `which`
        place = f"JAVA_HOME, {home}"
    else:
        java, place = shutil.which("java"), "the PATH"
    need = f"Spark needs Java {JAVA_MIN} or later"
    if java is None:
        return f"{need}, and there is no java in {place} (Debian: apt install default-jre-headless)"
    try:
        answer = subprocess.run(  # noqa: S603  # the program that Spark is about to run itself
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{need}, and {java} does not run: {error}"
    said = (answer.stderr + answer.stdout).strip()
    version = _VERSION.search(said)
    if version is None or int(version[1]) < JAVA_MIN:
        return f"{need}, and {java} says: {said.splitlines()[0] if said else 'nothing'}"
    return None
