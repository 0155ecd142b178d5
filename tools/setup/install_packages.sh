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

# Shows apt's status lines (APT::Status-Fd: "kind:item:percent:text"; first half of the bar downloading, second installing) and keeps all others in
# the file $1: a bar on a terminal, else a line every tenth.
show_progress() {
  local line kind item percent text shown=-1 filled
  local full='##############################' empty='..............................'
  while IFS= read -r line; do
    IFS=: read -r kind item percent text <<<"$line"
    case $kind in
      dlstatus) percent=$((${percent%%.*} / 2)) text='downloading' ;;
      pmstatus) percent=$((50 + ${percent%%.*} / 2)) text="installing $item" ;;
      *) echo "$line" >>"$1" && continue ;;
    esac
    if [ -t 2 ]; then
      [ "$percent" = "$shown" ] && continue
      filled=$((percent * 30 / 100))
      printf '\rpackages [%s%s] %3d %% %.40s\033[K' "${full:0:filled}" "${empty:filled}" "$percent" "$text" >&2
    else
      [ $((percent / 10)) -le $((shown / 10)) ] && [ "$shown" -ge 0 ] && continue
      echo "holmes: packages $percent %, $text" >&2
    fi
    shown=$percent
  done
  if [ -t 2 ] && [ "$shown" -ge 0 ]; then echo >&2; fi
}

echo "holmes: installing ${#missing[@]} Debian packages: ${missing[*]}"
log=$(mktemp)
# A fresh machine's own updates may hold apt's locks for some minutes; of the lists' lock apt itself does not wait.
waited=0
until "${sudo[@]}" apt-get update -qq 2>"$log"; do
  if ! grep -q 'Could not get lock' "$log"; then
    cat "$log" >&2
    echo "holmes: apt-get update failed; is this machine online?" >&2
    exit 1
  fi
  [ "$waited" -gt 0 ] || echo "holmes: another program holds apt's lock; waiting up to 5 minutes" >&2
  [ "$waited" -lt 300 ] || { cat "$log" >&2; exit 1; }
  sleep 3
  waited=$((waited + 3))
done
: >"$log"
if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o APT::Status-Fd=1 -o DPkg::Lock::Timeout=300 "${missing[@]}" 2>&1 </dev/null |
    show_progress "$log"; then
  tail -n 20 "$log" >&2
  echo "holmes: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
rm -f "$log"
