"""The demonstration's collection: the documentation of Python's standard library, and queries from it."""
