"""Other programs' results as records: pytest-benchmark's JSON and NVBench's."""
