"""The management HTTP API: RabbitMQ's paths and JSON, for clients, tools and people."""
