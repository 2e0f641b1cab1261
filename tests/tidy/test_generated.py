"""Generated code is what its source gives, and is loaded where it is needed alone."""

import subprocess
import sys
from pathlib import Path

from tests.tidy.sources import ROOT

FOLDER = Path("gateway/pravega/controller/rpc")
LOADED = """
import gateway.serving.backend, gateway.serving.store_backend, sys
print([name for name in sys.modules if name.partition(".")[0] in {"h2", "google"}])
"""


def test_the_controllers_messages_are_what_their_source_gives(tmp_path: Path) -> None:
    subprocess.run(
        [
            *(sys.executable, "-m", "grpc_tools.protoc", "-I."),
            *(f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", FOLDER / "controller.proto"),
        ],
        check=True,
        cwd=ROOT,
    )

    for name in ("controller_pb2.py", "controller_pb2.pyi"):
        made = (tmp_path / FOLDER / name).read_text()
        assert made == (ROOT / FOLDER / name).read_text(), "make proto"


def test_a_server_whose_controller_is_off_loads_nothing_of_grpc() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", LOADED], check=True, capture_output=True, text=True, cwd=ROOT
    )

    assert loaded.stdout == "[]\n"
