"""Writes the locks: which version of each package is installed, and the hashes of its files.

`make lock` runs it, after a change of a requirement in pyproject.toml or to take newer versions. It
needs uv, which finds versions that fit every Python and platform at once.

With `--newest` it only prints what the server needs, without upper bounds, for `make newest`.

Each list of pyproject.toml has a file of its own with what it adds to those before it. So `pip
install --no-deps --require-hashes -r` of one after the other installs everything, and nothing else.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

LOCKS: Final = Path(__file__).parent
PYPROJECT: Final = LOCKS.parents[1] / "pyproject.toml"
OLDEST_SPARK: Final = "pyspark==4.2.1"
_OURSELVES: Final = "hutch-streams"
_ENTRY: Final = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==.*(?:\n    .*)*", re.MULTILINE)


def lists(project: dict[str, Any]) -> dict[str, list[str]]:
    """Return the requirements of each lock, in the order in which they are installed."""
    extras = project["project"]["optional-dependencies"]
    found = {
        "build": project["build-system"]["requires"],
        "run": project["project"]["dependencies"],
        **{name: extras[name] for name in ("bridge", "test", "bench", "test-spark", "dev")},
    }
    return {
        name: [each for each in requirements if not each.startswith(_OURSELVES)]
        for name, requirements in found.items()
    }


def without_upper_bound(requirement: str) -> str:
    """Return a requirement that any later version meets as well."""
    wanted = Requirement(requirement)
    bounds = [each for each in wanted.specifier if each.operator in {">=", ">", "!="}]
    wanted.specifier = SpecifierSet(",".join(map(str, bounds)))
    return str(wanted)


def entries(lock: str) -> dict[str, list[str]]:
    """Return the entries of a lock by the names of their packages.

    A package has several where Pythons or platforms need different versions of it.
    """
    found: dict[str, list[str]] = {}
    for entry in _ENTRY.finditer(lock):
        found.setdefault(entry["name"].lower(), []).append(entry[0])
    return found


def resolved(requirements: list[str], constraints: str, *options: str) -> str:
    """Return the lock of some requirements and all that they need."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, bounds = Path(folder, "wanted.in"), Path(folder, "bounds.txt")
        wanted.write_text("\n".join(requirements))
        bounds.write_text(constraints)
        command = [
            *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
            *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"),
            *("--no-emit-find-links", "--constraints", str(bounds), *options, str(wanted)),
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Do what the command line asks for."""
    wanted = lists(tomllib.loads(PYPROJECT.read_text()))
    if sys.argv[1:] == ["--newest"]:
        print("\n".join(map(without_upper_bound, wanted["run"])))
    else:
        write_all(wanted)


def write_all(wanted: dict[str, list[str]]) -> None:
    """Write all locks anew."""
    everything = resolved([each for some in wanted.values() for each in some], "")
    written: set[str] = set()
    so_far: list[str] = []
    for name, requirements in wanted.items():
        so_far += requirements
        found = entries(resolved(so_far, everything))
        write(name, {each: found[each] for each in found if each not in written})
        written |= set(found)
    write("oldest-spark", entries(resolved([OLDEST_SPARK], "", "--no-deps")))


def write(name: str, found: dict[str, list[str]]) -> None:
    """Write the lock of a list."""
    lines = [entry for some in found.values() for entry in some]
    LOCKS.joinpath(f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
