"""More than one machine: training and indexing on Ray."""
