"""The run of a job: a streaming query in batches, how far it has come, and how it ends."""
