#!/usr/bin/env bash
# Every check that a change must pass, each with the time it took. A stage that fails hides none of those after it; the
# exit status is 1 when any failed.
#
#     tools/test.sh ENVIRONMENT... -- [PYTEST ARGUMENTS]
#
# ENVIRONMENT is the command that makes the environment and prints its interpreter.
set -uo pipefail

make_environment=()
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    make_environment+=("$1")
    shift
done
shift

failed=""
stage() {
    local name=$1 TIMEFORMAT="== $1 took %0R s (processor: %0U s)"
    shift
    echo "== $name"
    time "$@" || failed="$failed $name"
    echo
}

environment() {
    python=$("${make_environment[@]}")
}

stage chromium sh tools/chromium.sh
stage environment environment
if [ -z "${python:-}" ]; then
    echo "failed:$failed"
    exit 1
fi
stage lint "$python" -m ruff check .
stage format "$python" -m ruff format --check .
stage types "$python" -m mypy
if [ "$#" = 0 ]; then
    # The tests below find everything compiled; here it shows what compiling costs.
    stage cuda "$python" -m pytest -q tests/architecture/test_cuda_builds.py
    stage triton "$python" -m groundspeed check '*/triton_*'
    # Files side by side, but not what is judged by a time that it takes, nor what shares the GPU.
    workers=$(getconf _NPROCESSORS_ONLN)
    [ "$workers" -le 4 ] || workers=4  # each may hold a browser, a worker of its own and torch
    stage tests "$python" -m pytest -q --durations=15 -n "$workers" --dist loadgroup -m "not quiet and not gpu"
    stage quiet "$python" -m pytest -q --durations=5 -m "quiet or gpu"
else
    stage tests "$python" -m pytest --durations=15 "$@"
fi

if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
