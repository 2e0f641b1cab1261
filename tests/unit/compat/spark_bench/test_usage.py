"""CPU time of processes that come and go."""

import os
import subprocess
import sys
import time

from compat.spark_bench.usage import Meter, Tree, Usage

SPIN = "import time; until = time.process_time() + 0.3\nwhile time.process_time() < until: pass"
# A parent that does what Python's daemons do: ended children are forgotten.
FORGETFUL = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.run([sys.executable, "-c", {SPIN!r}])
"""


def test_what_an_ended_grandchild_used_is_counted_though_its_parent_forgets_it() -> None:
    with Meter(os.getpid(), ()) as meter:
        subprocess.run([sys.executable, "-c", FORGETFUL], check=True, timeout=20)

    assert meter.used.python > 0.15
    assert meter.used.machine >= meter.used.python


def test_work_of_before_is_not_counted() -> None:
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass

    tree = Tree({os.getpid()})
    tree.look()

    assert tree.used(by_roots=True) < 0.1


def test_a_job_is_all_but_the_rest_of_the_machine() -> None:
    used = Usage(jvm=1.0, python=0.5, server=0.25, machine=2.0)

    assert used.job == 1.75
    assert used.others == 0.25
