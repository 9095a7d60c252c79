#!/bin/sh
# Install the system packages that the tests need and that are missing: a browser that prints reports, and fonts; Slurm
# and PostgreSQL, on which jobs are routed; Prometheus and Alertmanager, which take the rules of `observe`. The tests start daemons of their own in scratch folders; those that a
# package starts by itself on a machine with systemd are not used.
set -eu

missing=
for browser in "${CHIPWISE_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable chrome; do
    [ -n "$browser" ] && command -v "$browser" >/dev/null 2>&1 && found=$browser && break
done
[ -n "${found:-}" ] || missing="chromium"
linux() { [ "$(uname)" = Linux ] && command -v apt-get >/dev/null 2>&1; }
ls /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf /usr/share/fonts/truetype/liberation*/LiberationSans-Regular.ttf \
    >/dev/null 2>&1 || ! linux || missing="$missing fonts-dejavu-core fonts-liberation"

# need COMMAND PACKAGE: daemons lie where only root looks
need() { command -v "$1" >/dev/null 2>&1 || [ -x "${CHIPWISE_SBIN:-/usr/sbin}/$1" ] || missing="$missing $2"; }
if linux; then
    need munged munge
    need sbatch slurm-client
    need slurmctld slurmctld
    need slurmd slurmd
    need slurmrestd slurmrestd
    need prometheus prometheus
    need prometheus-alertmanager prometheus-alertmanager
    ls "${CHIPWISE_POSTGRES:-/usr/lib/postgresql}"/*/bin/initdb >/dev/null 2>&1 || need initdb postgresql
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing$(printf ' %s' $missing), which the tests of reports, of routing and of alerts need."
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # several names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "The tests of reports, of routing and of alerts need:$(printf ' %s' $missing). Run: sudo apt-get install --no-install-recommends$(printf ' %s' $missing)" >&2
    exit 1
fi
