"""The RabbitMQ stream protocol."""
