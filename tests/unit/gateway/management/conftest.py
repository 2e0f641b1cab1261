from tests.unit.gateway.stream.conftest import broker

__all__ = ["broker"]
