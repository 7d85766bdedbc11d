"""One file a plot."""
