import subprocess
import sys

import pytest

from compat.bench import surroundings
from compat.bench.surroundings import available_bytes, busy_cores, warm_memory

PAGES = 5_000
PEAK = f"""
from pathlib import Path
from compat.bench import surroundings

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

surroundings.STEP_BYTES = 3_000_000
before = peak()
surroundings.touch({PAGES} * 4096 + 1)
print((peak() - before) // 4)
"""
SPIN = "while True: pass"


def test_every_page_is_touched() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    # The kernel counts in batches, and a huge page may be more than what was asked for.
    assert PAGES - 200 <= int(done.stdout) <= PAGES + 1_000


def test_what_was_touched_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(surroundings, "available_bytes", lambda: 1 << 24)

    warm_memory(0.5, said.append)
    warm_memory(0, said.append)

    assert len(said) == 1
    assert said[0].startswith("touched 0.0 GiB of memory in ")


def test_memory_that_cannot_be_touched_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(surroundings, "available_bytes", lambda: 1 << 60)

    warm_memory(1, said.append)

    assert said[0].startswith("warning: memory was not touched before: ")


def test_the_kernel_says_how_much_memory_is_available() -> None:
    assert available_bytes() > 1 << 24


def test_other_processes_that_use_a_core_are_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", SPIN]) as process:
        try:
            # Others may run beside it, but a core that is shared is a busy core too.
            assert busy_cores() > 0.5
        finally:
            process.kill()
