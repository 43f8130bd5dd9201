"""What the first call costs: compiling, tuning, loading, and the first run."""

from groundspeed import asv_suite as _suite

globals().update(
    _suite.ask(
        __name__,
        _suite.Question(
            kind="time",
            unit="seconds",
            answer=lambda measurement: _suite.seconds(_suite.first_call_ns(measurement)),
            means=(
                "Host wall time from the inputs to the first output: in a fresh process with empty caches where "
                "GROUNDSPEED_FIRST_CALL asked for that, else of prepare and the first run in the sweep's own process."
            ),
            # Since 2 a worker has imported what torch.compile needs before the first case is prepared.
            revision=".2",
        ),
    )
)
