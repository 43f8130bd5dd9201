"""How well this machine can be measured: a dozen probes in fresh processes, our timers beside others', costs and
ceilings. Only what runs in a probe's process imports torch.
"""
