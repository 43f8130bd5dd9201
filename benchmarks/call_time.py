"""How long a caller waits: host wall time of one synchronised call."""

from groundspeed import asv_suite as _suite

globals().update(
    _suite.ask(
        __name__,
        _suite.Question(
            kind="time",
            unit="seconds",
            answer=lambda measurement: _suite.samples(measurement, "call"),
            means="Host wall time of one call, from issuing it to its end on the device.",
        ),
    )
)
