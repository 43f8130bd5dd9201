"""From float32 sums to the output's type, rounded to nearest in Triton's interpreter too, which cuts bfloat16 off.

Where several rounded results follow one another a cut is always to the same side: errors add up instead of averaging
out, and a tolerance that admits them would admit real faults on a GPU.
"""

import triton
import triton.language as tl


@triton.jit
def rounded(value, element: tl.constexpr, INTERPRETED: tl.constexpr):
    """``value.to(element)`` to nearest, ties to even; NaN stays NaN unless all its upper bits are 0."""
    if INTERPRETED and element == tl.bfloat16:
        bits = value.to(tl.int32, bitcast=True)
        # The lower half must be gone before the cut, which makes something of a denormal: of zero, rounded.
        value = ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).to(tl.float32, bitcast=True)
    return value.to(element)
