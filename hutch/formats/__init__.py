"""Stored forms: a chunk, its entries and sub-batches, and messages of AMQP 1.0; no I/O."""
