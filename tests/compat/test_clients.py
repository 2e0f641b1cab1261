"""The same scenarios by official clients, against Hutch and RabbitMQ: the same results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.broker import BrokerUnavailable, RunningBroker, obtain
from compat.clients.comparison import Campaign, Comparison
from compat.clients.not_offered import VERSIONS
from compat.clients.programs import PROGRAMS
from compat.clients.report import is_whole, keep, page
from compat.clients.servers import serving

# The first test waits for the builds and for all runs.
pytestmark = pytest.mark.timeout(1_500)

CLIENTS = pytest.mark.parametrize("client", list(VERSIONS))


@pytest.fixture(scope="module")
def own_broker() -> Iterator[RunningBroker]:
    """A RabbitMQ for this module alone, which stops and starts it."""
    try:
        broker = obtain(found=False)
    except BrokerUnavailable as error:
        pytest.skip(str(error))
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def comparison(
    own_broker: RunningBroker,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Comparison:
    """Everything is run once, several programs at a time; the tests look at what came of it."""
    folder: Path = tmp_path_factory.mktemp("clients")
    with serving(folder, own_broker) as servers:
        found = Campaign(PROGRAMS, servers, folder).run()
    show(request, page(found))
    if is_whole(found):
        keep(page(found))
    return found


def show(request: pytest.FixtureRequest, text: str) -> None:
    """Print, past what pytest does with output."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        sys.stdout.write(f"\n{text}\n")


def ran(comparison: Comparison, client: str) -> None:
    """Skip a client whose program cannot be had here."""
    if client in comparison.unavailable:
        pytest.skip(comparison.unavailable[client])


@CLIENTS
def test_a_client_finds_the_same_on_both_servers(comparison: Comparison, client: str) -> None:
    ran(comparison, client)
    assert comparison.faults(client) == []


@CLIENTS
def test_what_a_library_does_not_offer_is_listed_with_a_reason(
    comparison: Comparison, client: str
) -> None:
    ran(comparison, client)
    assert comparison.offer_faults(client) == []


def test_every_client_reads_what_every_client_wrote(comparison: Comparison) -> None:
    assert comparison.crossing_faults() == []
