"""What the numbers say: pure functions over records. Imports records, numpy and the standard library only."""
