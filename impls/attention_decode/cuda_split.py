"""cuda_split.cu is built for two head dimensions in 16-bit types, and holds up to 128 elements in float32."""


def unsupported(dtype, B, H, G, S, D, fill="ragged", layout="contiguous"):
    if dtype != "float32" and D not in (64, 128):
        return "the mma.sync kernels are built for head dimensions 64 and 128"
    if D > 128:
        return "the float32 kernel holds head dimensions up to 128"
    return None
