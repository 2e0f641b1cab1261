"""Conditions of a figure besides the servers: the machine, its disk, the versions."""

import os
import platform
import subprocess
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Final

from gateway.kernels import uncompiled

GIB: Final = 1 << 30
REPOSITORY: Final = Path(__file__).resolve().parents[2]
FSYNC_PROBES: Final = 200
FSYNC_BYTES: Final = 4096
LIBRARIES: Final = ("uvloop", "isal", "xxhash", "Cython")


def describe_machine(data_folder: Path, fsync_ms: float) -> dict[str, str]:
    """Return what the report says of the machine, by title."""
    missing = uncompiled()
    memory_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    return {
        "CPU": f"{len(os.sched_getaffinity(0))} x {_cpu_model()}",
        "memory": f"{memory_gib:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "disk": f"{_file_system(data_folder)}; fdatasync of 4 KiB takes {fsync_ms:.2f} ms",
        "Python": f"{platform.python_version()} with {', '.join(_libraries())}",
        "kernels": "not compiled: " + ", ".join(missing) if missing else "compiled",
        "commit": commit(),
    }


def commit() -> str:
    """Return the commit that is measured, marked if the working tree differs from it."""
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(git, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def fsync_ms_of(folder: Path) -> float:
    """Return the median time of overwriting and syncing 4 KiB in a file that is allocated."""
    times = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
        probe.write(bytes(FSYNC_PROBES * FSYNC_BYTES))
        os.fsync(probe.fileno())
        for index in range(FSYNC_PROBES):
            began = time.perf_counter()
            os.pwrite(probe.fileno(), b"x" * FSYNC_BYTES, index * FSYNC_BYTES)
            os.fdatasync(probe.fileno())
            times.append(time.perf_counter() - began)
    return sorted(times)[FSYNC_PROBES // 2] * 1000


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    best = ("", "unknown")
    for line in Path("/proc/mounts").read_text().splitlines():
        _device, point, kind = line.split()[:3]
        if folder.resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def _libraries() -> list[str]:
    found = []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return found
