"""Checks of a job before Spark starts: Java, packages, the function of its user, the servers."""
