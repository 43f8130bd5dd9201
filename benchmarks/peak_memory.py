"""How much device memory an implementation needs above its inputs, its output included."""

from groundspeed import asv_suite as _suite

globals().update(
    _suite.ask(
        __name__,
        _suite.Question(
            kind="memory",
            unit="bytes",
            answer=lambda measurement: measurement.memory_bytes,
            means="Highest device memory of one call above its inputs, and what is held between calls.",
        ),
    )
)
