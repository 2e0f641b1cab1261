"""The bridge: a process that carries messages between queues, topics, exchanges and streams."""
