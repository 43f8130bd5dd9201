"""Records made up for tests: no figure in them was measured."""

from __future__ import annotations

from groundspeed.records import (
    Accuracy,
    Ceilings,
    Environment,
    Footer,
    Header,
    Measurement,
    Record,
    record_path,
    write_record,
)

CEILINGS = Ceilings(copy=4e12, read=4e12, write=4e12, matmul={"float16": 7e14})
ENVIRONMENT = Environment(
    device="cuda",
    device_name="NVIDIA Test",
    python="3.12.3",
    os="Linux",
    torch="2.11.0",
    triton="3.6.0",
    driver="580.1",
)
SPREAD = (1.0, 1.01, 0.99, 1.005, 0.995, 1.002, 0.998, 1.003, 0.997, 1.0, 1.001, 0.999, 1.0, 1.0, 1.0)


def ok(implementation, microseconds, dtype="float16", M=8192, N=8192, **more):
    base = microseconds * 1e3
    fields = {
        "samples": {"device_cold": [base * s for s in SPREAD], "device_hot": [base * s * 0.9 for s in SPREAD]},
        "bytes_read": M * N * 2,
        "bytes_written": M * N * 2,
        "flops": 5 * M * N,
        "accuracy": Accuracy(max_abs=1e-3, max_rel=1e-3, norm=1e-4, tolerance_used=0.1),
        "timer": "cupti",
    }
    return Measurement(
        implementation=implementation, dtype=dtype, shape={"M": M, "N": N}, status="ok", **{**fields, **more}
    )


def bad(implementation, status, reason, failure=None, dtype="float16", M=8192, N=8192):
    return Measurement(
        implementation=implementation,
        dtype=dtype,
        shape={"M": M, "N": N},
        status=status,
        failure=failure,
        reason=reason,
    )


def record(*measurements, operator="softmax", machine="nvidia-test", run_id="20260101T000000-aaaa", **header):
    fields = {
        "started": "2026-01-01T00:00:00Z",
        "environment": ENVIRONMENT,
        "ceilings": CEILINGS,
        "tier": "core",
        "commit": "0123456789abcdef0123456789abcdef01234567",
    }
    head = Header(run_id=run_id, operator=operator, machine=machine, **{**fields, **header})
    return Record(head, tuple(measurements), Footer(len(measurements), {"time": 2.0, "check": 1.0}))


def store(results, one):
    """Write a record where a run would have put it."""
    path = record_path(results, one.header.machine, one.header.run_id, one.header.operator)
    write_record(path, one)
    return path
