"""Rights to log in and to act: users, passwords, permissions, limits."""
