#!/bin/sh
# Written by chipwise deploy write. Startup script of a cloud node: finds out which node it is, fetches the key of munge
# from Secrets Manager, and starts slurmd, which asks the controller for its configuration.
set -eu
token=$(curl --silent --fail --request PUT --header "X-aws-ec2-metadata-token-ttl-seconds: 300" \
    http://169.254.169.254/latest/api/token)
tag() {
    curl --silent --fail --header "X-aws-ec2-metadata-token: $token" \
        "http://169.254.169.254/latest/meta-data/tags/instance/$1"
}
node=$(tag chipwise-nodes)
controller=$(tag chipwise-controller)
secret=$(tag chipwise-munge-secret)
command -v slurmd >/dev/null || {
    apt-get update --quiet --quiet
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet munge slurmd
}
umask 077
# never in the image nor in the tags: both can be read by many
aws secretsmanager get-secret-value --secret-id "$secret" --query SecretString --output text | base64 --decode \
    >/etc/munge/munge.key
chown munge:munge /etc/munge/munge.key
systemctl restart munge
# -b: it has just booted, whatever the image says
exec slurmd -D -b -N "$node" --conf-server "$controller"
