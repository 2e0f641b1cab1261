"""Stored forms: a chunk, its entries and sub-batches, messages of AMQP 1.0 and MQTT; no I/O."""
