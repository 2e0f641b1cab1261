"""Messages of AMQP 1.0 as records hold them: written, and read without trust in any number."""
