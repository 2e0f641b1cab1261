"""Which values the settings of policies may have."""

from typing import Any

import pytest

from gateway.broker.errors import UnusableValue
from gateway.broker.rules.policy_settings import KNOWN, check_known, check_values


@pytest.mark.parametrize(
    "definition",
    [
        {"alternate-exchange": ""},
        {"consumer-disconnected-timeout": 0},
        {"consumer-timeout": 0},
        {"dead-letter-exchange": "x"},
        {"dead-letter-routing-key": ""},
        {"dead-letter-strategy": "at-least-once"},
        {"delayed-retry-max": 1},
        {"delayed-retry-min": 1},
        {"delayed-retry-type": "disabled"},
        {"delayed-retry-type": "failed", "delayed-retry-min": 5},
        {"delivery-limit": -5},
        {"expires": 2**80},
        {"initial-cluster-size": 0},
        {"max-in-memory-bytes": 0},
        {"max-in-memory-length": 0},
        {"max-length": 0},
        {"message-ttl": 0},
        {"overflow": "reject-publish-dlx"},
        {"queue-leader-locator": "balanced"},
        {"queue-leader-locator": "least-leaders"},
        {"queue-mode": "lazy"},
        {"queue-version": 2},
        {"target-group-size": 1},
        {"of-a-plugin": None},
    ],
)
def test_values_that_a_queue_may_have_are_taken(definition: dict[str, Any]) -> None:
    check_values(definition)


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ({"alternate-exchange": 5}, "5 is not a valid alternate exchange name"),
        ({"consumer-disconnected-timeout": -1}, "-1 is not a valid consumer disconnected timeout"),
        ({"consumer-timeout": 1.5}, "1.5 is not a valid consumer timeout"),
        ({"dead-letter-exchange": None}, "null is not a valid dead letter exchange name"),
        ({"dead-letter-routing-key": []}, r"\[\] is not a valid dead letter routing key"),
        ({"dead-letter-strategy": "x"}, '"x" is not a valid dead letter strategy'),
        ({"delayed-retry-max": 0}, "0 is not a valid delayed retry maximum delay"),
        ({"delayed-retry-min": 0}, "0 is not a valid delayed retry minimum delay"),
        ({"delayed-retry-type": "x"}, '"x" is not a valid delayed retry type'),
        ({"delayed-retry-type": "all"}, "delayed-retry-min is required"),
        ({"delivery-limit": "5"}, '"5" is not a valid delivery limit'),
        ({"expires": 0}, "0 is not a valid queue expiry"),
        ({"initial-cluster-size": -1}, "-1 is not a valid cluster size"),
        ({"max-in-memory-bytes": -1}, "max-in-memory-bytes: -1 is not a valid"),
        ({"max-in-memory-length": "5"}, 'max-in-memory-length: "5" is not a valid'),
        ({"max-length": "many", "max-age": "1h"}, '"many" is not a valid maximum length'),
        ({"max-length": True}, "true is not a valid maximum length"),
        ({"message-ttl": "5"}, '"5" is not a valid message TTL'),
        ({"overflow": "x"}, '"x" is not a valid overflow value'),
        ({"overflow": {}}, "{} is not a valid overflow value"),
        ({"queue-leader-locator": "x"}, '"x" is not a valid queue leader locator value'),
        ({"queue-mode": 5}, "5 is not a valid queue-mode value"),
        ({"queue-version": 3}, "3 is not a valid queue-version value"),
        ({"queue-version": True}, "true is not a valid queue-version value"),
        ({"target-group-size": 0}, "0 is not a valid qq target count value"),
    ],
)
def test_values_that_no_queue_may_have_are_refused_in_words(
    definition: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnusableValue, match=reason):
        check_values(definition)


def test_keys_that_nobody_knows_are_refused() -> None:
    check_known(dict.fromkeys(KNOWN))

    with pytest.raises(UnusableValue, match="max-ege, max-prio are not recognised"):
        check_known({"max-prio": 1, "expires": 1, "max-ege": "1h"})
