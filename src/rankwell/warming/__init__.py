"""Kernels compiled ahead of their first use."""
