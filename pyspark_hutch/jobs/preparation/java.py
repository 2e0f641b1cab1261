"""Looks for a Java that Spark can run on; one line says why there is none."""

import os
import re
import shutil
import subprocess
from typing import Final

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
