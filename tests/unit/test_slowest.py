import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests import slowest

BUSY_S: Final = 0.4
BELOW: Final = f"""
import subprocess, sys, time

if "again" not in sys.argv:
    subprocess.run([sys.executable, __file__, "again"])
while time.process_time() < {BUSY_S}:
    pass
if "again" not in sys.argv:  # goes on until the process of the tests ends
    print("done", flush=True)
    sys.stdin.read()
"""
BUSY: Final = """
import subprocess, sys
from pathlib import Path

BELOW = [sys.executable, str(Path(__file__).with_name("below.py"))]

def test_one():
    sys.kept = subprocess.Popen(BELOW, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert sys.kept.stdout.readline() == b"done\\n"

def test_two():
    subprocess.run([*BELOW, "again"], check=True)
"""
IDLE: Final = """
import time

def test_waiting():
    time.sleep(1.2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_file_is_shown_with_the_time_of_all_the_processes_that_it_started(
    tmp_path: Path, workers: str
) -> None:
    for name, text in (("below.py", BELOW), ("test_busy.py", BUSY), ("test_idle.py", IDLE)):
        (tmp_path / name).write_text(text)

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.slowest", "-p", "no:cacheprovider"),
            *("--rootdir", str(tmp_path), "-n", workers, "--dist", "loadfile", str(tmp_path)),
        ],
        cwd=Path(slowest.__file__).parents[1],
        check=True,
        capture_output=True,
        text=True,
    )

    rows = re.findall(r"^ +([\d.]+) +([\d.]+) +(\d+)  (test_\w+\.py)$", done.stdout, re.MULTILINE)
    assert [(name, tests) for _, _, tests, name in rows] == [
        ("test_busy.py", "2"),
        ("test_idle.py", "1"),
    ]
    (busy_s, *_), (idle_s, waited_s, *_) = rows
    assert float(busy_s) > 2.9 * BUSY_S  # it is rounded
    assert float(waited_s) >= 1.2
    assert float(idle_s) < BUSY_S
