"""How a directory becomes a member's, and what is refused with which words."""

from __future__ import annotations

import asyncio

import nats
import pytest

from store.replica.jetstream import JetStreamLog, LogAddress
from store.replica.local_copy import JOINING, MEMBER, Place
from tests.client import Client
from tests.http_client import Api
from tests.integration.administrator import ctl
from tests.integration.cluster.members import Cluster, Load, create_streams, exit_status
from tests.integration.load import records_of
from tests.integration.server import HutchServer, run_serve, run_store
from tests.nats_servers import NatsServers
from tests.waiting import wait_until


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


def test_a_plain_directory_becomes_the_first_member_and_others_copy_it(cluster: Cluster) -> None:
    plain = HutchServer(cluster.folder / "a")
    store_one(plain, 1)
    plain.terminate()
    first = cluster.start("a")
    first.wait_until_ready()
    store_one(first, 2)

    second = cluster.start("b")
    second.wait_for_log("following the log member=b number=0")
    second.wait_for_log("it copies the active one: the log begins with the files of member a")
    second.wait_for_log("copied number=")

    store_one(first, 3)
    assert not (second.data_dir / JOINING).exists()
    first.kill()
    second.wait_until_ready()
    store_one(second, 4)
    assert stored(second) == [b"1", b"2", b"3", b"4"]


def test_a_member_that_is_behind_the_log_copies_anew(cluster: Cluster) -> None:
    active, follower = cluster.start_two()
    create_streams(active.endpoint)
    load = Load(active.endpoint)
    load.wait_for_more()
    wait_until((follower.data_dir / "checkpoint").exists)
    follower.kill()
    load.wait_for_more()
    trim(cluster)
    load.wait_for_more()

    follower.start()  # while the active member is written at
    follower.wait_for_log("copied number=")
    load.wait_for_more()
    active.kill()
    load.finish()
    follower.wait_until_ready()

    load.must_be_in(follower.endpoint)
    assert "cannot go on with the log, it copies the active one: messages before" in follower.logs
    assert not (follower.data_dir / JOINING).exists()
    active.start()  # what it has not synced is not in the log any more, so it may copy as well
    wait_until(lambda: follows_all(follower, "a"))
    follower.terminate()
    active.wait_until_ready()
    load.must_be_in(active.endpoint)
    active.terminate()
    one, other = cluster.directories_at_one_number()
    assert one == other


def follows_all(server: HutchServer, name: str) -> bool:
    """Return whether a member has all messages, as another one sees it."""
    members = {each["name"]: each for each in ctl(server, "members")}
    return members[name]["role"] == "following" and not members[name]["lag_messages"]


def trim(cluster: Cluster) -> None:
    """Trim the log to its last message."""
    log = JetStreamLog.open(LogAddress(cluster.nats.urls, cluster.nats.count, cluster.name))
    last = log.last()
    assert last is not None
    log.trim(last.position)
    log.close()


def test_a_copy_that_was_interrupted_goes_on(cluster: Cluster) -> None:
    plain = HutchServer(cluster.folder / "a")
    for number in (1, 2):
        store_one(plain, number)
    plain.terminate()
    filler = cluster.folder / "a" / "data" / "999999"  # the store removes what it does not know
    first = cluster.start("a")
    first.wait_until_ready()
    filler.write_bytes(bytes(256 << 20))
    second = cluster.start("b")
    second.wait_for_log("copying a member url=")
    wait_until(lambda: any((second.data_dir / JOINING / "files" / "data").glob("999999")))

    second.kill()
    done = run_serve(second.data_dir)
    assert done.returncode == 1
    assert "the directory is that of a member of a cluster: start it with --log" in done.stderr
    second.start()
    second.wait_for_log("copied number=")

    assert second.logs.count("copying a member url=") == 2
    filler.unlink()
    (second.data_dir / "data" / "999999").unlink()
    first.kill()
    second.wait_until_ready()
    assert stored(second) == [b"1", b"2"]


def test_copies_are_given_to_members_alone(cluster: Cluster) -> None:
    active = cluster.start("a")
    active.wait_until_ready()
    api = Api(*active.management)

    for headers in ({}, {"hutch-member": "a", "authorization": "Bearer "}):
        for method in ("POST", "GET", "DELETE"):
            answer = api.raw(request(method, headers))
            assert answer.startswith(b"HTTP/1.1 401")
    assert not list(active.data_dir.glob("copies/*"))


def request(method: str, headers: dict[str, str]) -> bytes:
    """Return the bytes of a request for a copy."""
    lines = [f"{method} /cluster/copy HTTP/1.1", "host: x", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


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


def test_a_second_member_of_a_name_ends_with_a_line_that_says_so(cluster: Cluster) -> None:
    first = cluster.start("a")
    first.wait_until_ready()
    create_streams(first.endpoint)
    load = Load(first.endpoint)
    load.wait_for_more()

    second = cluster.start("a", folder="second")

    assert exit_status(second) == 1
    assert "another process is member a of this cluster as well" in second.logs
    load.wait_for_more()
    load.finish()
    load.must_be_in(first.endpoint)


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
