# Read by the trials of this folder with `source`: what they share.
# shellcheck shell=bash

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"

# check SENTENCE COMMAND...: the command must succeed
check() {
  local sentence=$1 said
  shift
  if said=$("$@" 2>&1); then
    echo "✓ $sentence"
  else
    printf '✗ %s\n  failed: %s\n%s\n' "$sentence" "$*" "$said" >&2
    exit 1
  fi
}

# refuse SENTENCE COMMAND...: the command must fail
refuse() {
  local sentence=$1 said
  shift
  if said=$("$@" 2>&1); then
    printf '✗ %s\n  succeeded, and should not: %s\n%s\n' "$sentence" "$*" "$said" >&2
    exit 1
  fi
  echo "✓ $sentence"
}

# says TEXT COMMAND...: the command, whether it succeeds or not, prints the text
says() {
  local text=$1 said
  shift
  said=$("$@" 2>&1) || true
  printf '%s\n' "$said"
  [[ $said == *"$text"* ]]
}

same() { [ "$1" = "$2" ] || { echo "$1 is not $2"; return 1; }; }

not_tried() { echo "· not tried: $1"; }

# soon COMMAND...: repeats a command until it succeeds, for at most 60 seconds
soon() {
  local deadline=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $deadline ]; then "$@"; return; fi
    sleep 0.2
  done
}

# need_root: starts the script again as root
need_root() {
  [ "$(id -u)" = 0 ] || exec sudo -n env PORCHLIGHT_COMMIT="$commit" PORCHLIGHT_MAINTAINER="$maintainer" \
    SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" "$0" "$@"
}

# A room is a process with a network, mounts and processes of its own. The loopback ports are free there, and everything in
# it ends with it. `room` is the process id of its first process; `work` is the temporary folder of the trial.
# shellcheck disable=SC2154
open_room() {
  unshare --net --mount --pid --fork --kill-child sh -c \
    'ip link set lo up && mount -t proc proc "$1/proc" && echo ready && exec sleep infinity' - "$1" >"$work/room" 2>&1 &
  room_parent=$!
  soon grep -q ready "$work/room"
  room=$(pgrep -P $room_parent)
  room_root=$1
}

close_room() {
  [ -n "${room:-}" ] || return 0
  # The first process of a room ends only by a signal that it cannot ignore.
  kill -KILL "$room" 2>/dev/null || true
  wait "$room_parent" 2>/dev/null || true
}

inside() { nsenter --target "$room" --net --mount --pid chroot "$room_root" env DEBIAN_FRONTEND=noninteractive "$@"; }

sign_up() {
  curl --silent --show-error --fail --header 'content-type: application/json' --data "{\"email\":\"$1\"}" "$2/api/download"
}
