"""The demonstration's collection: the documentation of Python's standard library, and judged queries made from it."""
