import sys
from pathlib import Path

import pytest

from compat.bench.errors import BenchError
from compat.bench.hutch import Hutch
from compat.bench.rabbitmq import Rabbitmq
from compat.bench.servers import evict_files, properties_of
from tests.unit.compat.bench.stand_in import StandIn

COMMAND = (sys.executable, "-m", "tests.unit.compat.bench.stand_in")


def test_a_server_serves_after_its_start_and_again_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "hutch"
    folder.mkdir()
    server = Hutch(COMMAND, folder, "disk")
    try:
        server.start()
        first = server.pids
        assert properties_of(server.address)["product"] == "Stand-in"
        server.start()
        assert server.pids == first
        server.data_folder.mkdir()
        server.restart(evict=True)
        assert server.pids != first
        assert properties_of(server.address)["version"] == "1.0.0"
    finally:
        server.stop()
    assert not folder.exists()


def test_a_server_is_told_where_and_how_to_run(tmp_path: Path) -> None:
    program = "import sys, time; print('hutch ready', *sys.argv[1:], flush=True); time.sleep(60)"
    server = Hutch((sys.executable, "-c", program), tmp_path, "os")
    server.start()
    said = (tmp_path / "output.log").read_text().split()
    server.stop()
    ports = ["--port", "--management-port", "--tls-port"]
    files = ["--tls-cert", "--tls-key"]
    assert said[2::2] == ["--data", "--host", *ports, *files, "--durability"]
    numbers = (server.address.port, server.management_port, server.tls_address.port)
    made = tmp_path / "certificates"
    shown = [str(made / "server.pem"), str(made / "server-key.pem")]
    where = [str(tmp_path / "data"), "127.0.0.1"]
    assert said[3::2] == [*where, *map(str, numbers), *shown, "os"]


def test_a_server_that_does_not_start_is_reported_with_what_it_said(tmp_path: Path) -> None:
    server = Hutch((sys.executable, "-c", "raise SystemExit('no such setting')"), tmp_path, "os")
    with pytest.raises(BenchError, match="no such setting"):
        server.start()


def test_files_can_be_dropped_from_the_page_cache(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "data").write_bytes(b"kept")
    evict_files(tmp_path)
    assert (tmp_path / "deep" / "data").read_bytes() == b"kept"


def test_a_given_broker_is_measured_by_the_process_that_listens_and_left_alone() -> None:
    with StandIn() as stand_in:
        server = Rabbitmq((stand_in.address.host, stand_in.address.port))
        server.start()
        assert server.address == stand_in.address
        assert len(server.pids) == 1
        assert server.data_folder is None
        server.restart(evict=True)
        server.stop()
        assert properties_of(stand_in.address)["product"] == "Stand-in"
