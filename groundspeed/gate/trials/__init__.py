"""Slowdowns of known size, planted in real implementations and looked for with the gate: how much it really catches."""
