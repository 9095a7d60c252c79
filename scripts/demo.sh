#!/bin/sh
# A job routed and run on this machine, with a ledger of its own that is gone afterwards. Usage: demo.sh CHIPWISE
set -eu
chipwise=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CHIPWISE_DATA="$folder" CHIPWISE_LEDGER="$folder/ledger.db" CHIPWISE_POOLS=examples/pools/local.yaml

show() {
    printf '\n$ chipwise %s\n' "$*"
    "$chipwise" "$@"
}

show jobs submit examples/jobs/llama-lora.yaml
show router run --policy cheapest-within-deadline --until-idle
show jobs explain 1
