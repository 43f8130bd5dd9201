"""Logs in the layouts of compute-sanitizer's releases, after the samples of its user manual."""

from __future__ import annotations

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at void <unnamed>::past_end<float>(const T1 *, T1 *, long)+0xd0 in cuda_past_end.cu:21
=========     by thread (57,0,0) in block (48,0,0)
=========     Access at 0x7f241b00c0e4 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f241b000000 of size 49,380 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: run [0x8a81] in extension.so
=========
========= Invalid __global__ write of size 4 bytes
=========     at void <unnamed>::past_end<float>(const T1 *, T1 *, long)+0xd0 in cuda_past_end.cu:21
=========     by thread (58,0,0) in block (48,0,0)
=========     Access at 0x7f241b00c0e8 is out of bounds
=========
Traceback (most recent call last): what the program itself writes is none of the tool's
========= ERROR SUMMARY: 39 errors
"""

OLD_MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __shared__ read of size 4 bytes
=========     at 0x578 in /home/somebody/project/task1.cu:120:MatMulKernel(Matrix, Matrix, Matrix)
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x1a10 is out of bounds
=========
========= Invalid __global__ read of size 16 bytes
=========     at 0x1b8 in kernel(float *, float *)
=========     by thread (31,0,0) in block (0,0,0)
=========     Address 0x7f7a4e000004 is misaligned
=========
========= ERROR SUMMARY: 2 errors
"""

RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in /a/block_error.cu:41
=========     and Read access at sumKernel(int *, int *)+0x100 in /a/block_error.cu:51 [508 hazards]
=========     and Write access at sumKernel(int *, int *)+0x90 in /a/block_error.cu:41 [4 hazards]
=========
========= Warning: Race reported between Read access at ka(int *)+0x1b0
=========     and Write access at ka(int *)+0x1d0 [129152 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""

INITCHECK = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
========= at vectorAdd(int *)+0x70 in /home/cuda/memset_error.cu:41
========= by thread (31,0,0) in block (1,0,0)
========= Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
"""

SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at [clone myKernel(int *, int *)] outlineSync()+0x11f0 in test.cu:42
=========     by thread (32,0,0) in block (0,0,0)
=========         Device Frame: myKernel(int *, int *)+0xe40 in test.cu:60
=========
========= ERROR SUMMARY: 32 errors
"""

CLEAN = """\
========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
"""

CLEAN_RACECHECK = """\
========= COMPUTE-SANITIZER
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""

NOT_SUPPORTED = """\
========= COMPUTE-SANITIZER
========= Error: Device not supported. Please refer to the "Supported Devices" section of the sanitizer documentation.
=========
"""

NOT_TRACKED = """\
========= COMPUTE-SANITIZER
========= Internal Sanitizer Error: The Sanitizer encountered an error while launching rows and didn't track the \
launch. Errors might go undetected. (Unable to allocate enough memory to perform the requested operation)
=========
========= ERROR SUMMARY: 0 errors
"""

NEVER_STARTED = """\
========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
========= Tracking kernels launched by child processes requires the --target-processes all option.
"""

CRASHED = """\
========= COMPUTE-SANITIZER
========= Error: process didn't terminate successfully
========= Target application returned an error
========= ERROR SUMMARY: 0 errors
"""
