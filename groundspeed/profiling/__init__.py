"""One case of one implementation under a profiler, and the page that says what bounds it."""
