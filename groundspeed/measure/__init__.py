"""How a measurement is made. Nothing here is imported by what only reads results."""
