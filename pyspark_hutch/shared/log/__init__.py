"""Links to what `gateway/log` shares."""
