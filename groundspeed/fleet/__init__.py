"""The suite over many machines: shards of a run for plain CI matrices, and a fleet of GPUs on Ray."""
