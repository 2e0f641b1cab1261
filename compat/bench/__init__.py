"""The benchmark that puts Hutch and a real RabbitMQ side by side: `python -m compat.bench`."""
