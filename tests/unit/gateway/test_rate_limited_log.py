import logging

import pytest

from gateway.rate_limited_log import AGAIN_S, RateLimitedLog


def test_a_line_is_said_at_once_and_then_seldom_with_a_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [100.0]
    seldom = RateLimitedLog(logging.getLogger("gateway"), "refused name=%s", lambda: now[0])
    for number in range(1_000):
        seldom.error(number)
    now[0] += AGAIN_S
    seldom.error("last")
    assert caplog.messages == ["refused name=0 unsaid=0", "refused name=last unsaid=999"]
