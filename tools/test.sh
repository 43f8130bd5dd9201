#!/bin/sh
# Every check that a change must pass, each with the seconds it took. $PYTHON is the environment's interpreter.
# A stage that fails does not hide the ones after it; the exit status is 1 when any failed.
set -u

failed=""
stage() {
    name=$1
    shift
    began=$(date +%s)
    printf '== %s\n' "$name"
    "$@" || failed="$failed $name"
    printf '== %s took %s s\n\n' "$name" "$(($(date +%s) - began))"
}

stage lint "$PYTHON" -m ruff check .
stage format "$PYTHON" -m ruff format --check .
stage types "$PYTHON" -m mypy
stage tests "$PYTHON" -m pytest --durations=15 "$@"

if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
