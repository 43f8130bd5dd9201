"""The merge gate: policy, measurement request, verdicts, reports. Nothing here imports torch."""
