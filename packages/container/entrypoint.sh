#!/usr/bin/env bash
# What the container runs. Arguments that begin with a dash, or none, are mongod's; anything else is run as it is.
#
# A mongod whose directory is empty is first started on the loopback address alone, where
#
#   MONGO_INITDB_ROOT_USERNAME, MONGO_INITDB_ROOT_PASSWORD   make a user with the role root; the server then asks for a login
#   /docker-entrypoint-initdb.d/*.js and *.sh                are run by name: *.js in the shell on MONGO_INITDB_DATABASE, or test
#
# and only when all of that has succeeded does it listen for clients. The variables of users may end in _FILE and name a file.
set -euo pipefail

if [ $# -eq 0 ] || [ "${1#-}" != "$1" ]; then set -- mongod "$@"; fi
[ "$1" = mongod ] || exec "$@"

# The value of a variable, or of the file that its namesake with _FILE names.
value() {
  local file="${1}_FILE"
  if [ -n "${!file:-}" ]; then cat "${!file}"; else printf '%s' "${!1:-}"; fi
}

# The value of an option of the server, or the second argument.
option() {
  local name=$1 found=$2
  shift 2
  while [ $# -gt 0 ]; do
    case $1 in
      "$name="*) found=${1#*=} ;;
      "$name") found=${2:-} ;;
    esac
    shift
  done
  printf '%s' "$found"
}

has() {
  local wanted=$1 argument
  shift
  for argument in "$@"; do
    case $argument in "$wanted" | "$wanted="*) return 0 ;; esac
  done
  return 1
}

data=$(option --dbpath /data/db "$@")
port=$(option --port 27017 "$@")
user=$(value MONGO_INITDB_ROOT_USERNAME)
password=$(value MONGO_INITDB_ROOT_PASSWORD)
scripts=${INITDB_SCRIPTS:-/docker-entrypoint-initdb.d}
# There from before the first start until all has succeeded.
unfinished=$data/.initialising

fail() {
  echo "error: $1" >&2
  exit 1
}

shell() {
  mongo --quiet --port "$port" "$@"
}

make_user() {
  # The shell takes them from its environment, where no quoting is needed.
  ROOT_USERNAME=$user ROOT_PASSWORD=$password shell admin --eval \
    'db.createUser({user: _getEnv("ROOT_USERNAME"), pwd: _getEnv("ROOT_PASSWORD"), roles: [{role: "root", db: "admin"}]});'
}

run_scripts() {
  local script
  for script in "$scripts"/*; do
    case $script in
      *.js) echo "running $script" && shell "${MONGO_INITDB_DATABASE:-test}" "$script" || return 1 ;;
      *.sh) echo "running $script" && bash "$script" || return 1 ;;
    esac
  done
}

initialise() {
  local done=no
  mkdir -p "$unfinished"
  mongod --dbpath "$data" --bind_ip 127.0.0.1 --port "$port" --logpath "$unfinished/log" --pidfilepath "$unfinished/pid" --fork ||
    fail "the server did not start: see $unfinished/log"
  { [ -z "$user" ] || make_user; } && run_scripts && done=yes
  mongod --dbpath "$data" --pidfilepath "$unfinished/pid" --shutdown
  [ $done = yes ] || fail "$data could not be initialised; empty it before another attempt"
  rm -r "$unfinished"
}

if [ -n "$user$password" ] && { [ -z "$user" ] || [ -z "$password" ]; }; then
  fail "a root user needs both a name and a password"
fi
[ ! -e "$unfinished" ] || fail "an earlier attempt to initialise $data did not succeed; empty it first"
if [ ! -e "$data/journal" ] && { [ -n "$user" ] || [ -n "$(ls -A "$scripts" 2>/dev/null)" ]; }; then initialise; fi
[ -z "$user" ] || has --auth "$@" || set -- "$@" --auth
has --dbpath "$@" || set -- "$@" --dbpath "$data"
has --bind_ip "$@" || has --bind_ip_all "$@" || set -- "$@" --bind_ip_all
exec "$@"
