"""Links to what `gateway/stream` shares."""
