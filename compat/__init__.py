"""Hutch beside the real thing: a reference RabbitMQ, real clients, frame-by-frame comparison."""
