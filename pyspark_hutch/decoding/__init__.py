"""Chunks as bytes to batches of rows, without Spark."""

from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.decoding.errors import DamagedChunk, UnopenedSubBatch
from pyspark_hutch.decoding.wanted import Wanted

__all__ = ["DamagedChunk", "Decoder", "UnopenedSubBatch", "Wanted"]
