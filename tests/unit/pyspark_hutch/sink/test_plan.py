from collections.abc import Iterator

import pytest

from hutch.client.errors import Refused
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.sink.plan import WritePlan, may_be_staged, plan_write, why_not_staged
from pyspark_hutch.sink.targets import Targets
from tests.reading_rig import cluster_of
from tests.sink_rig import FakeSink, settings_for
from tests.stage_rig import FakeStages

NUMBERED = {"txnAppId": "job", "txnVersion": "1"}
DEDUP = {"delivery": "dedup", "producerName": "p", "dedupUnsafePlan": "true"}


@pytest.fixture
def hutch() -> Iterator[FakeStages]:
    with FakeStages("a") as fake:
        yield fake


@pytest.fixture
def rabbitmq() -> Iterator[FakeSink]:
    with FakeSink("a") as fake:
        fake.product = "RabbitMQ"
        yield fake


@pytest.mark.parametrize(
    ("options", "is_staged"),
    [
        ({}, True),
        ({"delivery": "auto"}, True),
        ({"delivery": "staged"}, True),
        (NUMBERED, True),
        ({"delivery": "none"}, False),
        (DEDUP, False),
    ],
)
def test_rows_are_staged_where_the_server_can_and_the_options_say_nothing_else(
    hutch: FakeStages, options: dict[str, str], *, is_staged: bool
) -> None:
    settings = settings_for(hutch, stream="a", **options)

    assert plan_write(cluster_of(hutch), settings, ["body"]) == WritePlan(Targets("a"), is_staged)


@pytest.mark.parametrize("options", [{}, {"delivery": "auto"}, {"delivery": "none"}, DEDUP])
def test_on_another_server_rows_are_published_at_once(
    rabbitmq: FakeSink, options: dict[str, str]
) -> None:
    settings = settings_for(rabbitmq, stream="a", **options)

    assert plan_write(cluster_of(rabbitmq), settings, ["body"]) == WritePlan(
        Targets("a"), is_staged=False
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [({"delivery": "staged"}, "delivery='staged'"), (NUMBERED, "txnAppId='job'")],
)
def test_a_server_that_cannot_stage_is_named_where_the_options_ask_for_it(
    rabbitmq: FakeSink, options: dict[str, str], named: str
) -> None:
    settings = settings_for(rabbitmq, stream="a", **options)

    with pytest.raises(WrongOption) as failure:
        plan_write(cluster_of(rabbitmq), settings, ["body"])

    assert str(failure.value) == (
        f"option {named}: 127.0.0.1:{rabbitmq.port} (RabbitMQ) has no staged writing, which needs "
        "Hutch; take delivery=dedup or none"
    )


def test_a_target_that_is_not_there_is_told(hutch: FakeStages) -> None:
    with pytest.raises(Refused, match="stream 'gone' does not exist"):
        plan_write(cluster_of(hutch), settings_for(hutch, stream="gone"), ["body"])


def test_rows_with_filter_values_are_published_at_once(hutch: FakeStages) -> None:
    settings = settings_for(hutch, stream="a")

    plan = plan_write(cluster_of(hutch), settings, ["body", "filter_value"])

    assert not plan.is_staged
    assert why_not_staged(settings, ["body", "filter_value"]) == (
        ", since staged rows have no filter values, and there is a column 'filter_value'"
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [({"delivery": "staged"}, "delivery='staged'"), (NUMBERED, "txnAppId='job'")],
)
def test_filter_values_are_refused_where_the_options_ask_for_stages(
    hutch: FakeStages, options: dict[str, str], named: str
) -> None:
    with pytest.raises(BadColumn) as failure:
        may_be_staged(settings_for(hutch, stream="a", **options), ["body", "filter_value"])

    assert str(failure.value) == (
        f"column 'filter_value': cannot be written together with option {named}: staged rows have "
        "no filter values"
    )


def test_only_a_write_that_says_nothing_needs_a_reason(hutch: FakeStages) -> None:
    silent, none = settings_for(hutch, stream="a"), settings_for(hutch, stream="a", delivery="none")

    assert why_not_staged(silent, ["body"]) == ", since the server has no staged writing"
    assert why_not_staged(none, ["body"]) == ""
