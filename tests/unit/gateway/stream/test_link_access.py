"""What becomes of a connection when its user may do less than before."""

import pytest

from gateway.broker.access.model import User, UserPermission
from gateway.pending import Pending
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import plain
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

OK = ResponseCode.OK
GONE = ResponseCode.PUBLISHER_DOES_NOT_EXIST


@pytest.fixture
def app(broker: Broker) -> LinkRig:
    """A user with every right, who publishes to and reads the streams `a` and `b`."""
    guest = broker.access.user("guest")
    assert guest is not None
    broker.store_rig.run(broker.access.put_user(User("app", guest.password_hash)))
    allow(broker, ".*", ".*")
    client = broker.link(user="app")
    client.create("a", "b")
    for number, name in enumerate(("a", "b")):
        client.declare(number, name, "ref")
        subscribe(client, number, name)
    return client


def allow(broker: Broker, write: str, read: str) -> None:
    broker.store_rig.run(
        broker.access.put_permission(
            UserPermission(user="app", virtual_host="/", configure=".*", write=write, read=read)
        )
    )


def subscribe(client: LinkRig, number: int, name: str) -> None:
    assert client.code("subscribe", m.Subscribe(number, name, FIRST, 1, {})) == OK


def log_in_again(client: LinkRig) -> list[str]:
    """Renew the secret; gives the streams that were lost, which come after the answer."""
    client.tell("sasl_authenticate", plain("app", "guest"))
    names = [each.command.name for each in client.received()]
    assert names[0] == "sasl_authenticate"
    assert client.answer_to("sasl_authenticate") == m.SaslAuthenticateReply(OK)
    return lost(client)


def lost(client: LinkRig) -> list[str]:
    updates = client.take("metadata_update")
    assert {update.code for update in updates} <= {ResponseCode.STREAM_NOT_AVAILABLE}
    return sorted(update.stream for update in updates)


def uses(client: LinkRig) -> tuple[list[str], list[str]]:
    return (
        sorted(each.stream.name for each in client.link.publishers.values()),
        sorted(each.stream.name for each in client.link.subscriptions.values()),
    )


def test_a_changed_pattern_waits_for_the_secret_to_be_renewed(app: LinkRig) -> None:
    allow(app.broker, "^b$", "^b$")

    assert uses(app) == (["a", "b"], ["a", "b"])
    app.publish(0, (1, b"still"))
    assert app.refused() == []
    # What is new is judged by what counts now.
    assert app.code("declare_publisher", m.DeclarePublisher(7, "", "a")) == 16
    assert log_in_again(app) == ["a"]
    assert uses(app) == (["b"], ["b"])


@pytest.mark.parametrize(("write", "read"), [("^b$", ".*"), (".*", "^b$"), ("^b$", "^b$")])
def test_either_right_lost_takes_publishers_and_subscriptions(
    app: LinkRig, write: str, read: str
) -> None:
    allow(app.broker, write, read)

    assert log_in_again(app) == ["a"]

    assert uses(app) == (["b"], ["b"])
    app.publish(0, (1, b"x"))
    assert app.refused() == [(0, [(1, GONE)])]
    unknown = ResponseCode.SUBSCRIPTION_ID_DOES_NOT_EXIST
    assert app.code("unsubscribe", m.Unsubscribe(0)) == unknown
    # Its references are free again, and it does not watch any more.
    allow(app.broker, ".*", ".*")
    app.declare(0, "a", "ref")
    app.tell("delete_publisher", m.DeletePublisher(0))
    app.broker.link().tell("delete_stream", m.DeleteStream("a"))
    assert lost(app) == []


def test_a_right_that_is_not_used_may_go(broker: Broker) -> None:
    guest = broker.access.user("guest")
    assert guest is not None
    broker.store_rig.run(broker.access.put_user(User("app", guest.password_hash)))
    allow(broker, ".*", ".*")
    client = broker.link(user="app")
    client.create("w", "r")
    client.declare(1, "w")
    subscribe(client, 1, "r")

    allow(broker, "w", "r")

    assert log_in_again(client) == []
    assert uses(client) == (["w"], ["r"])


def test_a_renewed_secret_with_every_right_changes_nothing(app: LinkRig) -> None:
    assert log_in_again(app) == []
    assert uses(app) == (["a", "b"], ["a", "b"])


def test_without_its_virtual_host_a_renewal_ends_the_connection(app: LinkRig) -> None:
    app.broker.store_rig.run(app.broker.access.delete_permission("app", "/"))
    assert lost(app) == ["a", "b"]

    done = app.start("sasl_authenticate", plain("app", "guest"))
    [(delay_ms, pending)] = app.ports.delays
    pending.settle(None)
    app.finish(done)

    assert delay_ms == 3_000
    answer = app.answer_to("sasl_authenticate")
    assert answer == m.SaslAuthenticateReply(ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE)
    assert app.session.is_done


def test_all_permissions_lost_are_felt_at_once(app: LinkRig) -> None:
    app.broker.store_rig.run(app.broker.access.delete_permission("app", "/"))

    assert uses(app) == ([], [])
    assert lost(app) == ["a", "b"]
    assert not app.ports.is_stopped
    assert app.code("declare_publisher", m.DeclarePublisher(7, "", "a")) == 16


def test_a_deleted_user_is_sent_away_after_its_streams(app: LinkRig) -> None:
    app.broker.store_rig.run(app.broker.access.delete_user("app"))

    assert uses(app) == ([], [])
    assert lost(app) == ["a", "b"]
    assert app.ports.is_stopped
    assert app.received() == [], "a bare FIN"
    assert len(app.broker.connections) == 0


def test_nothing_is_bound_to_who_lost_everything_while_a_stream_was_opened(app: LinkRig) -> None:
    app.create("slow")
    stream = app.broker.stream("slow")
    stream.opening = Pending()
    done = app.start("declare_publisher", m.DeclarePublisher(9, "", "slow"))
    assert not done
    app.broker.store_rig.run(app.broker.access.delete_permission("app", "/"))
    lost(app)

    opening, stream.opening = stream.opening, None
    opening.settle(app.broker.log("slow"))
    app.finish(done)

    assert app.answer_to("declare_publisher") == m.Status(ResponseCode.ACCESS_REFUSED)
    assert not app.link.publishers


def test_who_ended_is_counted_no_more(app: LinkRig) -> None:
    connections = app.broker.connections
    assert connections.count_of_user("app") == 1

    app.link.end("enough")

    assert connections.count_of_user("app") == 0
    assert app.ports.is_stopped
