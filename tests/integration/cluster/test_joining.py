"""How a directory becomes a member's, and what is refused with which words."""

from __future__ import annotations

import asyncio
import shutil

import nats
import pytest

from store.replica.local_copy import MEMBER, Place
from tests.client import Client
from tests.integration.cluster.members import FENCED, Cluster, Load, create_streams, exit_status
from tests.integration.load import records_of
from tests.integration.server import HutchServer, run_serve, run_store
from tests.nats_servers import NatsServers
from tests.waiting import HANG_S, wait_until


def store_one(server: HutchServer, publishing_id: int) -> None:
    """Store a record in the stream `orders`, which is created with the first."""
    with Client.opened(*server.endpoint) as client:
        if publishing_id == 1:
            client.create("orders")
        client.declare(1, "orders", "w")
        client.publish(1, {publishing_id: b"%d" % publishing_id})
        client.confirmed()


def stored(server: HutchServer) -> list[bytes]:
    with Client.opened(*server.endpoint) as client:
        return records_of(client, "orders")


def test_a_plain_directory_becomes_the_first_member_and_a_copy_of_it_the_second(
    cluster: Cluster,
) -> None:
    plain = HutchServer(cluster.folder / "a")
    store_one(plain, 1)
    plain.terminate()
    first = cluster.start("a")
    first.wait_until_ready()
    store_one(first, 2)

    empty = cluster.start("b", folder="empty")
    assert exit_status(empty) == 1
    assert "the log begins with the files of member a, which are not in it" in empty.logs
    assert "a copy of that member's" in empty.logs
    assert first.is_running

    first.terminate()
    shutil.copytree(first.data_dir, cluster.folder / "b")
    first.start()
    first.wait_until_ready()
    second = cluster.start("b")
    second.wait_for_log("following the log member=b")
    store_one(first, 3)
    first.kill()
    second.wait_until_ready()
    store_one(second, 4)
    assert stored(second) == [b"1", b"2", b"3", b"4"]


def test_a_member_s_directory_is_served_with_its_log_alone(cluster: Cluster) -> None:
    member = cluster.start("a")
    member.wait_until_ready()
    store_one(member, 1)
    member.terminate()

    for run in (run_serve, run_store):
        done = run(member.data_dir)
        assert done.returncode == 1
        assert "the directory is that of a member of a cluster: start it with --log" in done.stderr

    member.start()
    member.wait_until_ready()
    assert stored(member) == [b"1"]


def test_a_directory_with_a_store_is_refused_beside_a_log_that_has_messages(
    cluster: Cluster,
) -> None:
    member = cluster.start("a")
    member.wait_until_ready()
    other = HutchServer(cluster.folder / "other")
    store_one(other, 1)
    other.terminate()

    done = run_serve(other.data_dir, *cluster.arguments("other"), environment=cluster.environment())

    assert done.returncode == 1
    assert "has a store that is no member of this log's cluster" in done.stderr
    assert "begin with an empty directory, or with another log" in done.stderr
    with HutchServer(other.data_dir) as again:
        assert stored(again) == [b"1"]


def test_a_member_of_one_log_is_refused_beside_another_one(cluster: Cluster) -> None:
    member = cluster.start("a")
    member.wait_until_ready()
    store_one(member, 1)
    member.terminate()
    elsewhere = cluster.environment() | {"HUTCH_CLUSTER__NAME": f"{cluster.name}-other"}

    done = run_serve(member.data_dir, *cluster.arguments("a"), environment=elsewhere)

    assert done.returncode == 1
    assert "the log is empty, and this directory has messages of it" in done.stderr
    member.start()
    member.wait_until_ready()
    assert stored(member) == [b"1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--durability", "os"), "a confirm means that the log has it on its disks"),
        (("--durability", "interval"), "a confirm means that the log has it on its disks"),
        (("--member", "one.two"), "1 to 64 letters, digits, - and _"),
    ],
)
def test_wrong_settings_beside_a_log_are_told(
    cluster: Cluster, arguments: tuple[str, str], words: str
) -> None:
    done = run_serve(
        cluster.folder / "a",
        *("--log", cluster.nats.url, *arguments),
        environment=cluster.environment(),
    )

    assert done.returncode == 2
    assert words in done.stderr
    assert not (cluster.folder / "a").exists()


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:4222", "127.0.0.1:4222", "nats://", "x,nats://y"]
)
def test_a_log_that_is_no_address_of_nats_is_told(cluster: Cluster, url: str) -> None:
    done = run_serve(cluster.folder / "a", "--log", url)

    assert done.returncode == 2
    assert "--log" in done.stderr
    assert "nats://HOST:PORT" in done.stderr


def test_a_wrong_password_is_told(cluster: Cluster) -> None:
    with NatsServers(cluster.folder / "nats", has_login=True) as servers:
        url = servers.url.replace("hutch-password", "wrong")
        done = run_serve(
            cluster.folder / "a",
            *("--log", url, "--member", "a"),
            environment=cluster.environment() | {"HUTCH_CLUSTER__REPLICAS": "1"},
        )

    assert done.returncode == 1
    assert "the log refuses the login" in done.stderr
    assert "wrong@" not in done.stderr


def test_a_member_waits_for_a_log_that_is_away_and_says_so(cluster: Cluster) -> None:
    with NatsServers(cluster.folder / "nats") as servers:
        servers.each[0].kill()
        cluster.nats = servers
        member = cluster.start("a")
        member.environment["HUTCH_CLUSTER__REPLICAS"] = "1"
        member.restart()
        member.wait_for_log("the log does not answer, waiting seconds=0")
        servers.start()
        member.wait_until_ready()
        assert "the log answers again" in member.logs
        assert "one replica: it survives the loss of no machine" in member.logs
        store_one(member, 1)
        member.terminate()


def test_of_two_members_of_one_name_one_serves_and_nothing_is_lost(cluster: Cluster) -> None:
    """Each takes the other's signs of life for its own, so the second one takes over."""
    first = cluster.start("a")
    first.wait_until_ready()
    create_streams(first.endpoint)
    load = Load(first.endpoint)
    load.wait_for_more()
    load.finish()  # what is stored is a sign of life, too

    second = cluster.start("a", folder="second")
    second.wait_until_ready()

    wait_until(lambda: not first.is_running)
    assert first.process.wait(HANG_S) == FENCED
    load.must_be_in(second.endpoint)


def test_a_member_that_cannot_go_on_leaves_its_copy(cluster: Cluster) -> None:
    active, other = cluster.start_two()
    store_one(active, 1)
    other.wait_for_log("following the log member=b")
    wait_until((other.data_dir / "checkpoint").exists)
    active.kill()
    asyncio.run(purge(cluster))

    assert exit_status(other) == 1
    assert "the log is empty, and this directory has messages of it" in other.logs
    assert (other.data_dir / MEMBER).exists()
    assert (other.data_dir / "checkpoint").exists()


async def purge(cluster: Cluster) -> None:
    """Remove all messages of the log, as another program might."""
    client = await nats.connect(cluster.nats.urls)
    await client.jetstream().purge_stream(cluster.name)
    await client.close()


def test_a_copy_that_has_come_to_no_checkpoint_is_left_as_it_is(cluster: Cluster) -> None:
    directory = cluster.folder / "b"
    directory.mkdir()
    (directory / MEMBER).write_bytes(Place(bytes(16)).pack())

    done = run_serve(directory)

    assert done.returncode == 1
    assert "the directory is that of a member of a cluster" in done.stderr
    assert (directory / MEMBER).exists()
