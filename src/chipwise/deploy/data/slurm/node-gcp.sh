#!/bin/sh
# Written by chipwise deploy write. Startup script of a cloud node: finds out which node it is, fetches the key of munge
# from Secret Manager, and starts slurmd, which asks the controller for its configuration.
set -eu
attribute() {
    curl --silent --fail --header "Metadata-Flavor: Google" \
        "http://metadata.google.internal/computeMetadata/v1/instance/attributes/$1"
}
# a slice has a node for each of its hosts, and the hosts know their numbers
number=$(attribute agent-worker-number || echo 0)
node=$(attribute chipwise-nodes | cut --delimiter=, --fields=$((number + 1)))
controller=$(attribute chipwise-controller)
secret=$(attribute chipwise-munge-secret)
command -v slurmd >/dev/null || {
    apt-get update --quiet --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet munge slurmd
}
umask 077
# never in the image nor in the metadata: both can be read by many
gcloud secrets versions access latest --secret="$secret" --out-file=/etc/munge/munge.key
chown munge:munge /etc/munge/munge.key
systemctl restart munge
# -b: it has just booted, whatever the image says
exec slurmd -D -b -N "$node" --conf-server "$controller"
