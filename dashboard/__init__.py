"""The Dash app over stored results. Reads results, never measures: nothing here imports torch."""
