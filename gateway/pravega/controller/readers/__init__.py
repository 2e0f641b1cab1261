"""Groups of readers: their records, and the states that their readers agree on."""
