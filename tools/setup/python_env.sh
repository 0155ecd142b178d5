#!/usr/bin/env bash
# Makes the private Python environment .venv and installs requirements-<set>.txt into it, once: python_env.sh serve|test
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
requirements="$here/requirements-$1.txt"
stamp="$root/.venv/installed-$1"
cmp -s "$requirements" "$stamp" && exit 0
[ -x "$root/.venv/bin/pip" ] || python3 -m venv "$root/.venv"
if grep -q '^[^#]' "$requirements"; then
  echo "holmes: installing the Python packages of requirements-$1.txt"
  "$root/.venv/bin/pip" install -q --disable-pip-version-check -r "$requirements" ||
    { echo "holmes: pip could not install them; is this machine online?" >&2; exit 1; }
fi
cp "$requirements" "$stamp"
