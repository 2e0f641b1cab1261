"""The official clients' own test suites, run against Hutch from outside; see README.md."""
