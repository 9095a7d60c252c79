#!/bin/sh
# Run a command (.ci/run if none is given) in a clone of this checkout on what looks like a fresh machine: an empty home,
# temporary folder and caches, and no variable but what reaches the package registry. Fails if it leaves anything in the
# temporary folder. Usage: sh scripts/fresh.sh [COMMAND...]
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder" # PostgreSQL, which the tests start, runs as a user of its own
mkdir "$folder/home" "$folder/t"
git clone -q . "$folder/chipwise"

# how pip reaches its index is the machine's own: variables, and a configuration that lies in the home we leave behind
config=
for file in "${PIP_CONFIG_FILE:-}" "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
    [ -n "$file" ] && [ -f "$file" ] && config=$file && break
done
set -- "${@:-.ci/run}"
cd "$folder/chipwise"
status=0
env -i PATH="$PATH" HOME="$folder/home" TMPDIR="$folder/t" LANG="${LANG:-C.UTF-8}" ${config:+PIP_CONFIG_FILE="$config"} \
    $(env | grep -E '^(PIP_(INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|CERT|DEFAULT_TIMEOUT)|SSL_CERT_FILE|(HTTPS?|NO)_PROXY|(https?|no)_proxy)=' | tr '\n' ' ') \
    "$@" || status=$?

left=$(ls -A "$folder/t")
if [ -n "$left" ]; then
    printf 'left in the temporary folder:\n%s\n' "$left" >&2
    [ "$status" -ne 0 ] || status=1
fi
echo "fresh: '$*' left with $status; home holds: $(cd "$folder/home" && find . -maxdepth 2 -mindepth 1 | sort | tr '\n' ' ')"
exit "$status"
