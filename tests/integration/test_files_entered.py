"""A message or a command passes through few files, so that a reader can follow it."""

import os
import subprocess
import sys
from pathlib import Path

WALKS = Path(__file__).with_name("walks.py")


def test_a_message_or_a_command_passes_through_few_files() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(WALKS)],
        env={**os.environ, "HUTCH_UNCOMPILED": "1"},
        cwd=WALKS.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
