"""Gives the harness's timer a clock that runs ten times too slowly, once the referee must have looked."""

import time

from groundspeed.measure.timers import clock


class Slow:
    @staticmethod
    def perf_counter_ns():
        return time.perf_counter_ns() // 10


def prepare(x):
    calls = [0]

    def run():
        calls[0] += 1
        if calls[0] == 40:
            clock.time = Slow
        return x * 2

    return run
