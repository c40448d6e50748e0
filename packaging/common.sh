# Read by the scripts in this folder with `source`: what they share. Sets the variables that name what is made.
# shellcheck shell=bash
# shellcheck disable=SC2034  # the variables are used by the scripts that read this file

source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

die() {
  echo "${0##*/}: $1" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# packages PACKAGE...: installs the Debian packages that are missing
packages() {
  local package missing=()
  command -v apt-get >/dev/null || return 0
  for package in "$@"; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  { as_root apt-get update -qq &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >&2 ||
    die "apt-get could not install ${missing[*]}."
}

# The version of Cargo.toml. Another one is for tests of upgrades.
version=${PORCHLIGHT_PACKAGE_VERSION:-$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source_folder/Cargo.toml" | head -n 1)}

# Commit, author and time of the source. A source folder without git needs all three in the environment.
in_git() { git -C "$source_folder" "$@"; }
commit=${PORCHLIGHT_COMMIT:-$(in_git describe --always --abbrev=12 --dirty --exclude='*')}
# The author of the commit, to whom SECURITY.md leads.
maintainer=${PORCHLIGHT_MAINTAINER:-$(in_git log -1 --format='%an <%ae>')}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(in_git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) system=linux-x86_64 architecture=amd64 ;;
  Linux-aarch64) system=linux-aarch64 architecture=arm64 ;;
  Darwin-arm64) system=darwin-arm64 architecture=arm64 ;;
  Darwin-x86_64) system=darwin-x86_64 architecture=amd64 ;;
  *) die "there are no packages for $(uname -s) on $(uname -m)." ;;
esac

is_linux() { [ "${system%%-*}" = linux ]; }

# glibc_of BINARY: the oldest glibc that it runs on, such as 2.34
glibc_of() {
  readelf --version-info "$1" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1
}

# Files get the same modes, whatever the umask of the user.
umask 022
