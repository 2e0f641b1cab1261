"""docs/client.md and the client's docstring: programs that run as printed, names, types."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

import hutch.client
from compat.certificates import Certificates
from tests.integration.conftest import external_endpoint
from tests.integration.server import REPOSITORY, HutchServer
from tests.integration.tls_rig import certified_server, tls_endpoint
from tests.waiting import HANG_S

PAGE: Final = (REPOSITORY / "docs" / "client.md").read_text(encoding="utf-8")
PROGRAMS: Final = re.findall(
    r"^```python\n(.*?)^```\n(?:\n^```\n(.*?)^```)?", PAGE, re.MULTILINE | re.DOTALL
)
"""Each with what it prints."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, made: Certificates) -> Iterator[HutchServer]:
    if external_endpoint() is not None:
        pytest.skip("needs a server of its own")
    with certified_server(tmp_path_factory.mktemp("page") / "data", made) as running:
        yield running


def printed(program: str, server: HutchServer, folder: Path) -> str:
    """Run a program against a server in place of the one that it names; return what it prints."""
    ports = {"localhost:5552": server.port, "localhost:5551": tls_endpoint(server).port}
    assert [address for address in ports if address in program] != []
    for address, port in ports.items():
        program = program.replace(address, f"localhost:{port}")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.replace(f":{server.port}", ":5552")


@pytest.mark.parametrize(("program", "said"), PROGRAMS)
def test_the_programs_of_the_page_run_as_printed(
    server: HutchServer, made: Certificates, tmp_path: Path, program: str, said: str
) -> None:
    (tmp_path / "ca.pem").write_bytes(made.ca.read_bytes())

    assert printed(program, server, tmp_path) == said


def test_the_program_of_the_docstring_runs_as_printed(server: HutchServer, tmp_path: Path) -> None:
    docstring = str(hutch.client.__doc__)
    program = textwrap.dedent(
        docstring[docstring.index("    from ") : docstring.index("\n`Client`")]
    )

    assert printed(program, server, tmp_path) == "(0, b'one') (1, b'two')\n1\n"


def test_the_page_has_each_public_name() -> None:
    missing = [name for name in hutch.client.__all__ if not re.search(rf"\b{name}\b", PAGE)]

    assert missing == []


def test_the_programs_have_types_where_the_package_is_installed(tmp_path: Path) -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed; `make setup` installs it")
    making = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")]
    subprocess.run(making, check=True, timeout=HANG_S)
    (installed,) = (tmp_path / "venv").glob("lib/*/site-packages")
    (installed / "hutch").symlink_to(REPOSITORY / "hutch")
    whole = ""
    for number, (program, _) in enumerate(PROGRAMS):
        assert {*re.findall(r"^(?:from|import) (hutch\S*)", program, re.MULTILINE)} == {
            "hutch.client"
        }
        whole += f"def program_{number}() -> None:\n{textwrap.indent(program, '    ')}\n"
    (tmp_path / "programs.py").write_text(whole, encoding="utf-8")

    checking = [sys.executable, "-m", "mypy", "--strict", "--python-executable", "venv/bin/python"]
    done = subprocess.run(
        [*checking, "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "programs.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )

    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout
