"""What connections share: streams, users, permissions."""
