"""What the first call costs: preparing (compile, tune, load) and the first run together."""

from groundspeed import asv_suite as _suite

globals().update(
    _suite.ask(
        __name__,
        _suite.Question(
            kind="time",
            unit="seconds",
            answer=lambda measurement: _suite.seconds(measurement.first_call_ns),
            means="Host wall time of prepare and the first run, once a sweep: compiling, tuning, loading.",
        ),
    )
)
