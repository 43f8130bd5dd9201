#!/bin/sh
# Debian's Chromium for the browser tests, where it is missing and can be installed; without it they are skipped.
set -eu

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "chromium: not found, and not to be installed without root and apt-get: browser tests will be skipped"
    exit 0
fi
echo "chromium: installing with apt-get"
if ! { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core; } >/tmp/groundspeed-apt.log 2>&1; then
    tail -n 3 /tmp/groundspeed-apt.log
    echo "chromium: apt-get could not install it: browser tests will be skipped"
fi
