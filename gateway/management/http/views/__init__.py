"""What each kind of object looks like in JSON, in RabbitMQ's words, and who answers for it."""
