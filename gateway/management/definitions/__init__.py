"""Definitions: everything about a server but its messages, in the form of RabbitMQ."""
