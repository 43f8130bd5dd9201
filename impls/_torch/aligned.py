"""What a library that assumes dense memory from an aligned address is handed: the tensor, or a copy of it."""


def aligned(tensor, alignment):
    """The same values, dense, from an address that is a multiple of ``alignment`` bytes; a copy is part of the call."""
    tensor = tensor.contiguous()
    return tensor.clone() if tensor.data_ptr() % alignment else tensor
