"""Which streams a query reads, and where in each it starts and ends."""
