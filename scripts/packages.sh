#!/bin/sh
# Install the system packages that the tests need and that are missing: a browser that prints reports, and fonts.
set -eu

missing=
for browser in "${CHIPWISE_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable chrome; do
    [ -n "$browser" ] && command -v "$browser" >/dev/null 2>&1 && found=$browser && break
done
[ -n "${found:-}" ] || missing="chromium"
ls /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf /usr/share/fonts/truetype/liberation*/LiberationSans-Regular.ttf \
    >/dev/null 2>&1 || [ "$(uname)" != Linux ] || ! command -v apt-get >/dev/null 2>&1 ||
    missing="$missing fonts-dejavu-core fonts-liberation"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing$(printf ' %s' $missing), which the tests of reports need."
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # several names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "The tests of reports need:$(printf ' %s' $missing). Run: sudo apt-get install --no-install-recommends$(printf ' %s' $missing)" >&2
    exit 1
fi
