"""Work for several lanes: each takes the next piece when it is free."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock, Thread

from groundspeed.measure.claim import GpuBusy
from groundspeed.measure.lane import Lane
from groundspeed.measure.workers import Stopped

Work = Callable[[Lane, str], None]


def hand_out(pieces: Sequence[str], lanes: Sequence[Lane], work: Work) -> list[GpuBusy]:
    """Have all pieces worked on, in their order, one at a time on each lane.

    A lane whose GPU does not become free gives its piece back and takes no more: why is returned, one for each such
    lane, and raised when none is left for the rest. What else ``work`` raises ends all lanes and is raised here; so
    does an interrupt.
    """
    if len(lanes) == 1:
        for piece in pieces:
            work(lanes[0], piece)
        return []
    return _Hands(pieces, lanes, work).run()


class _Hands:
    """A thread a lane. The main thread waits, and is the one that is interrupted."""

    def __init__(self, pieces: Sequence[str], lanes: Sequence[Lane], work: Work) -> None:
        self._left = deque(pieces)
        self._lanes, self._work = lanes, work
        self._lock = Lock()
        self._errors: list[BaseException] = []
        self._busy: list[GpuBusy] = []

    def run(self) -> list[GpuBusy]:
        threads = [Thread(target=self._serve, args=(lane,), name=lane.place.label) for lane in self._lanes]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(0.1)
        finally:
            self._stop()
            for thread in threads:
                thread.join()
        if self._errors:
            raise self._errors[0]
        if self._left:
            raise self._busy[0]
        return self._busy

    def _serve(self, lane: Lane) -> None:
        while (piece := self._next()) is not None:
            try:
                self._work(lane, piece)
            except Stopped:
                return
            except GpuBusy as busy:
                with self._lock:
                    self._left.appendleft(piece)
                    self._busy.append(busy)
                return
            except BaseException as error:
                with self._lock:
                    self._errors.append(error)
                self._stop()
                return

    def _next(self) -> str | None:
        with self._lock:
            return self._left.popleft() if self._left and not self._errors else None

    def _stop(self) -> None:
        for lane in self._lanes:
            lane.workers.stop()
