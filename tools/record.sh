#!/usr/bin/env bash
# What the documents show of a GPU, measured again: step by step, until the time is up. Each step keeps its results under
# results/ as it goes, so what a step had done when its time was up stays done.
#
#     tools/record.sh [--minutes N] [STEP...]
#
# STEPs, by default all in this order:
#     tests      the tests that need a GPU
#     core       tier core of everything; one that was ended says how to go on with it
#     checks     every implementation on every check case, kept
#     soak       the gate on identical code, parts 1 to 3
#     small      tier small of everything, four times
#     sanitize   memcheck and racecheck of every CUDA implementation
#     trials     planted slowdowns
#     calibrate  how well this machine can be measured
#     full       tier full of everything
# PYTHON is the interpreter (python3). Of two GPUs give each its own checkout, CUDA_VISIBLE_DEVICES, half of the cores
# (taskset) and its own compilers' caches where a cold start is to be measured. The exit status is 1 when a step failed,
# 2 for wrong use; a step whose time was up is no failure.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
minutes=1440
if [ "${1:-}" = --minutes ]; then
    minutes=${2:-}
    [[ $minutes =~ ^[0-9]+$ ]] || { echo "record: --minutes takes a whole number, not '$minutes'" >&2; exit 2; }
    shift 2
fi
all=(tests core checks soak small sanitize trials calibrate full)
[ "$#" -gt 0 ] || set -- "${all[@]}"
for step in "$@"; do
    [[ " ${all[*]} " == *" $step "* ]] || { echo "record: no step '$step': there are ${all[*]}" >&2; exit 2; }
done
deadline=$((SECONDS + 60 * minutes))
failed=""

# do_it COMMAND...: until the deadline; an interrupted command of groundspeed's keeps what it has. A shell that was
# started in the background ignores SIGINT, and so would all that it starts.
do_it() {
    local left=$((deadline - SECONDS)) began=$SECONDS status=0
    if [ "$left" -le 0 ]; then
        echo "== no time left for: $*"
        return
    fi
    echo "== $*"
    timeout --signal=INT --kill-after=30 "$left" env --default-signal=INT "$@" || status=$?
    if [ "$SECONDS" -ge "$deadline" ]; then
        echo "== the time was up after $((SECONDS - began)) s: $*"
    else
        echo "== status $status after $((SECONDS - began)) s: $*"
        [ "$status" = 0 ] || failed="$failed $1"
    fi
}

seconds_left() {
    echo $((deadline > SECONDS ? deadline - SECONDS : 1))
}

groundspeed() {
    do_it "$python" -m groundspeed "$@"
}

for step in "$@"; do
    case $step in
        tests) do_it "$python" -m pytest -q -m gpu ;;
        core | full) groundspeed run --tier "$step" ;;
        checks) groundspeed check --keep ;;
        soak)
            for part in 1/3 2/3 3/3; do
                do_it "$python" -m groundspeed.gate.soak --part "$part" --sample 4 --skip 'torch_compile*' --tier core \
                    --budget "$(seconds_left)s"
            done
            ;;
        small) for _ in 1 2 3 4; do groundspeed run --tier small; done ;;
        sanitize)
            groundspeed sanitize
            groundspeed sanitize --tool racecheck
            ;;
        trials) do_it "$python" -m groundspeed.gate.trials --rounds 1 --budget "$(seconds_left)s" ;;
        calibrate) groundspeed calibrate ;;
    esac
done
[ -z "$failed" ]
