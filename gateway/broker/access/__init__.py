"""Who may log in, and what for: users, passwords, permissions, limits."""
