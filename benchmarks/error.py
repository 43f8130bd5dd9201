"""How far a result lies from the float64 reference: ||out - ref|| / ||ref||, Euclidean, without a unit."""

from groundspeed import asv_suite as _suite

globals().update(
    _suite.ask(
        __name__,
        _suite.Question(
            kind="track",
            unit="",
            answer=lambda measurement: measurement.accuracy.norm if measurement.accuracy else None,
            means="||out - ref|| / ||ref|| in the Euclidean norm, ref in float64, on the case's own inputs.",
        ),
    )
)
