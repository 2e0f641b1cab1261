"""Rows into streams: targets, publishing ids, and publishers that wait for their confirms."""
