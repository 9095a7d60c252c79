#!/bin/sh
# Make the virtual environment named in $1 with the Python named in $2; say what is missing, and what to do.
set -eu
venv=$1
python=$2

fail() {
    echo "$1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 || fail "No $python found. Install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv)."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old: chipwise needs Python 3.11 or newer. Name another with: make PYTHON=python3.12"

if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing $version, which $python needs to make virtual environments."
        apt-get update -qq && apt-get install -y -qq "$version" >/dev/null
    else
        fail "$python can't make virtual environments. Run: sudo apt install $version"
    fi
fi
"$python" -m venv "$venv"
