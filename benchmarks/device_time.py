"""How long one call keeps the device busy: ``cold`` with the L2 cache emptied by a read before it, ``hot`` without."""

from groundspeed import asv_suite as _suite

globals().update(
    _suite.ask_each(
        __name__,
        cold=_suite.Question(
            kind="time",
            unit="seconds",
            answer=lambda measurement: _suite.samples(measurement, "device_cold"),
            means="Span of one call's work on the device, the L2 cache emptied by a read before it.",
        ),
        hot=_suite.Question(
            kind="time",
            unit="seconds",
            answer=lambda measurement: _suite.samples(measurement, "device_hot"),
            means="Span of one call's work on the device, the caches as the call before left them.",
        ),
    )
)
