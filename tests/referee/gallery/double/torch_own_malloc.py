"""Takes scratch from the C library in each call, and gives it back."""

import ctypes

SIZE = 64 << 20
C = ctypes.CDLL(None)
C.malloc.restype = ctypes.c_void_p
C.malloc.argtypes = [ctypes.c_size_t]
C.free.argtypes = [ctypes.c_void_p]


def prepare(x):
    def run():
        scratch = C.malloc(SIZE)
        ctypes.memset(scratch, 1, SIZE)
        C.free(scratch)
        return x * 2

    return run
