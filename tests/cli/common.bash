# What the scripts of this folder share. $KVKEEP is the command.
set -euo pipefail

: "${KVKEEP:?is the path of the command}"
[[ -x $KVKEEP ]] || {
    echo "no command at $KVKEEP" >&2
    exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failures=0

complain() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

finish() {
    [[ $failures -eq 0 ]] || exit 1
}

# run ARGUMENT...: runs the command; status, out and err say what came of it.
run() {
    status=0
    "$KVKEEP" "$@" >"$scratch/.out" 2>"$scratch/.err" || status=$?
    out=$(cat "$scratch/.out")
    err=$(cat "$scratch/.err")
}

# refused STATUS LINE ARGUMENT...: the command fails with this status, exactly this line on stderr and nothing on stdout.
# A LINE that ends in ... is only the beginning.
refused() {
    local want=$1 line=$2
    shift 2
    run "$@"
    [[ $status -eq $want ]] || complain "exit $status instead of $want: kvkeep $*"
    [[ -z $out ]] || complain "prints on stdout: kvkeep $*"
    [[ $(wc -l <"$scratch/.err") -eq 1 ]] || complain "$(wc -l <"$scratch/.err") lines on stderr: kvkeep $*"
    if [[ $line == *... ]]; then
        [[ $err == "${line%...}"* ]] || complain "says '$err' instead of '$line': kvkeep $*"
    else
        [[ $err == "$line" ]] || complain "says '$err' instead of '$line': kvkeep $*"
    fi
}

# succeeds ARGUMENT...: the command exits 0 and says nothing on stderr.
succeeds() {
    run "$@"
    [[ $status -eq 0 ]] || complain "exit $status: kvkeep $*: $err"
    [[ -z $err ]] || complain "says '$err' on stderr: kvkeep $*"
}

# A flat JSON object of one line, or not.
is_json_object() {
    local value='("[^"\\]*"|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)'
    [[ $1 =~ ^\{\"[a-z0-9_]+\":$value(,\"[a-z0-9_]+\":$value)*\}$ ]]
}

keys_of() {
    grep -oE '"[a-z0-9_]+":' <<<"$1" | tr -d '":' | tr '\n' ' ' | sed 's/ $//'
}

# value_of KEY JSON: the value of a key of a flat object.
value_of() {
    grep -oE "\"$1\":[^,}]*" <<<"$2" | cut -d: -f2-
}

mooncake_line() { # MS INPUT OUTPUT IDS
    printf '{"timestamp": %s, "input_length": %s, "output_length": %s, "hash_ids": [%s]}\n' "$@"
}
