"""The same scenarios by several languages' clients, against Hutch and RabbitMQ."""
