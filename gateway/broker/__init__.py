"""State that connections share: streams, users, permissions."""
