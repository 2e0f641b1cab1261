"""Staged writes of a cluster: each row once, whatever is killed, by the network alone."""

from __future__ import annotations

import os
import signal
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from compat.certificates import Authority, Pair
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.server import Endpoint, HutchServer
from tests.integration.tls_rig import context_of, tls_endpoint
from tests.sink_rig import bodies_in
from tests.spark_cluster.conftest import need_java
from tests.spark_cluster.copying import BATCHES, SOURCE, TARGET, Copy, bodies_to_copy
from tests.spark_cluster.filling import fill_super_stream
from tests.spark_cluster.hosts import LOCAL, Host, Network, why_no_network
from tests.spark_cluster.sessions import DIES_WITH_US
from tests.spark_cluster.standalone import WORKERS, Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

USER, PASSWORD = "clerk", "secret"
CONFIGURE, WRITE, READ = "", f"^{TARGET}$", rf"^{SOURCE}(-\d+)?$"
EXECUTOR_KILLED, WORKER_KILLED = 1, 2


@dataclass(frozen=True)
class Site:
    """A server, and hosts that reach it by the network alone, where there may be such hosts.

    Attributes:
        server: Its data directory and its key are hidden from the others.
        at: Its host.
        others: The hosts of driver, master and workers.
        tls: Where it listens for TLS, by its address on the network.
        ca: The certificate that the others trust.
    """

    server: HutchServer
    at: Host
    others: tuple[Host, ...]
    tls: Endpoint
    ca: Path


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network | None]:
    """Give a network to put hosts in; None where there can be none."""
    if why_no_network():
        yield None
        return
    with Network(tmp_path) as network:
        yield network


@pytest.fixture
def site(tmp_path: Path, network: Network | None) -> Iterator[Site]:
    own = tmp_path / "server"
    own.mkdir()
    at, *others = (
        (LOCAL,) * (3 + WORKERS)
        if network is None
        else (network.host(), *(network.host(own) for _ in range(2 + WORKERS)))
    )
    authority = Authority()
    pair = authority.server(own, names=[at.address, "localhost"])
    ca = authority.write(tmp_path / "ca.pem")
    enter = (*DIES_WITH_US, *at.enter)  # else its network would outlive a killed test run
    with HutchServer(own / "data", *listening(at, pair), enter=enter) as server:
        tls = Endpoint(at.address, tls_endpoint(server).port)
        site = Site(server, at, tuple(others), tls, ca)
        at.call(partial(prepare, site))
        yield site


def listening(at: Host, pair: Pair) -> list[str]:
    tls = ["--tls-port", "0", "--tls-cert", str(pair.certificate), "--tls-key", str(pair.key)]
    return ["--host", "0.0.0.0", "--advertised-host", at.address, *tls]


def shake_hands(endpoint: Endpoint, context: ssl.SSLContext) -> None:
    with (
        socket.create_connection(endpoint, timeout=5) as connected,
        context.wrap_socket(connected, server_hostname=endpoint.host),
    ):
        pass


def refusals(site: Site) -> list[int]:
    """Return what the user of the copy gets for what the copy does not need."""
    tls = context_of(site.ca)
    with Client.opened(*site.tls, user=USER, password=PASSWORD, tls=tls) as client:
        asked = {
            "create_stream": m.CreateStream("more", {}),
            "delete_stream": m.DeleteStream(TARGET),
            "declare_publisher": m.DeclarePublisher(1, "", f"{SOURCE}-0"),
            "subscribe": m.Subscribe(1, TARGET, FIRST, 1, {}),
        }
        return [client.code_of(name, message) for name, message in asked.items()]


def test_a_user_with_the_rights_of_a_copy_may_do_nothing_else(site: Site) -> None:
    site.at.call(partial(fill_super_stream, site.server, SOURCE, [[b"a row"]]))
    driver, *_ = site.others

    assert driver.call(partial(refusals, site)) == [ResponseCode.ACCESS_REFUSED] * 4


def test_the_hosts_share_nothing_but_the_network(site: Site) -> None:
    reason = why_no_network()
    if reason:
        pytest.skip(reason)
    for host in site.others:
        assert host.run("ls", str(site.server.data_dir)).returncode, "it is out of reach"
        assert host.run("ls", "-A", str(site.server.data_dir.parent)).stdout == ""
        with pytest.raises(ssl.SSLCertVerificationError):
            host.call(partial(shake_hands, site.tls, ssl.create_default_context()))


def test_rows_are_there_once_after_an_executor_and_a_worker_are_killed(
    site: Site, tmp_path: Path
) -> None:
    need_java()
    bodies = bodies_to_copy()
    site.at.call(partial(fill_super_stream, site.server, SOURCE, bodies))
    driver, *cluster_hosts = site.others
    (tmp_path / "password").write_text(PASSWORD)
    options = {
        "endpoints": f"{site.tls.host}:{site.tls.port}",
        "tls": "true",
        "tls.ca": str(site.ca),
        "username": USER,
        "passwordFile": str(tmp_path / "password"),
    }
    stops = (EXECUTOR_KILLED, WORKER_KILLED)

    with Cluster(tmp_path / "cluster", cluster_hosts) as cluster:
        copy = Copy(site.server, cluster, tmp_path, options, stops=stops, host=driver)
        with copy.driver:
            os.kill(cluster.executor_of(copy.stopped(EXECUTOR_KILLED)), signal.SIGKILL)
            worker = cluster.worker_of(copy.stopped(WORKER_KILLED))
            assert worker is not None
            cluster.workers[worker].end()
            last = copy.finish()

    assert last >= BATCHES > WORKER_KILLED, "the worker that is left went on"
    found = site.at.call(partial(bodies_in, site.server, TARGET))
    assert sorted(found) == sorted(body for part in bodies for body in part)
    assert copy.stages() == []


def prepare(site: Site) -> None:
    """Make the target, and add the user."""
    with Client.opened(site.server.host, site.server.port) as client:
        client.create(TARGET)
    ctl(site.server, "add_user", USER, stdin=f"{PASSWORD}\n".encode())
    ctl(site.server, "set_permissions", USER, CONFIGURE, WRITE, READ)
