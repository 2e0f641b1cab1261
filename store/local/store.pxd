# Compiled as it is: its classes stay classes of Python.
