"""A fleet that is not there: how long pull requests wait, and what they cost, by policy and by number of GPUs."""
