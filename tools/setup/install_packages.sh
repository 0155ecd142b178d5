#!/usr/bin/env bash
# Installs the Debian packages named in tools/setup/packages-<set>.txt that are missing: install_packages.sh build [test ...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
missing=()
for name in "$@"; do
  while read -r package; do
    [ -n "$package" ] || continue
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
  done < "$here/packages-$name.txt"
done
[ ${#missing[@]} -eq 0 ] && exit 0

. /etc/os-release
if [ "${ID:-}" != debian ] || [ "${VERSION_ID:-}" != 12 ]; then
  echo "holmes: this is ${PRETTY_NAME:-not Debian}; install by hand what stands for these Debian 12 packages: ${missing[*]}" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "holmes: packages are missing (${missing[*]}); run as root or install sudo" >&2; exit 1; }
  sudo=(sudo)
fi
echo "holmes: installing ${#missing[@]} Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq || { echo "holmes: apt-get update failed; is this machine online?" >&2; exit 1; }
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
  { echo "holmes: apt-get could not install: ${missing[*]}" >&2; exit 1; }
