"""Fixtures of the tests of conversions."""

from tests.integration.bridge.conftest import mosquitto

__all__ = ["mosquitto"]
