"""Reading and writing streams in Spark against Spark's own Parquet, and against RabbitMQ."""
