"""Transposes the colour matrix on the way in; a symmetric one would hide it."""


def prepare(x, mean, std, M):
    turned = M.T.contiguous()
    return lambda: ((x - mean) / std) @ turned
