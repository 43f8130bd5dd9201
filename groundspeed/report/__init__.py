"""What people read: the terminal's tables and progress, and the README's. Reads records, never torch."""
