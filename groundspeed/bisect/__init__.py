"""Which commit made an implementation slower: a binary search, each step a comparison by the gate's paired rule."""
