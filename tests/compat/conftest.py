"""Fixtures of the tests that need a real RabbitMQ."""

from compat.broker.fixture import rabbitmq

__all__ = ["rabbitmq"]
