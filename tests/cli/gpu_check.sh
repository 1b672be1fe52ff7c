#!/usr/bin/env bash
# tools/gpu-check where there is no GPU, and what it writes down of programs that only seem to run on one.
# shellcheck disable=SC2016 # those programs are texts
set -euo pipefail

check=$(cd "$(dirname "$0")/../.." && pwd)/tools/gpu-check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
complain() {
    echo "$1" >&2
    exit 1
}

program() { # NAME TEXT
    mkdir -p "$(dirname "$work/$1")"
    printf '#!/bin/bash\n%s\n' "$2" >"$work/$1"
    chmod +x "$work/$1"
}

# --- no GPU
program none/nvidia-smi 'exit 9'
rc=0
PATH=$work/none:$PATH "$check" --out "$work/out" 2>"$work/err" || rc=$?
[[ $rc -eq 1 && $(<"$work/err") == "tools/gpu-check: there is no NVIDIA GPU here (nvidia-smi finds none)" ]] ||
    complain "without a GPU: $rc, $(<"$work/err")"

# --- a GPU, and programs that print what the true ones print
program smi/nvidia-smi 'case $* in *name*) echo "Some GPU" ;; *) echo 1.0 ;; esac'
program run/kvkeep 'case $1 in
--version) echo "kvkeep 1.2.3" ;;
*) echo "{\"results\":[{\"name\":\"a\",\"unit\":\"GB/s\",\"median\":90.5,\"p10\":90,\"p90\":91,\"repeats\":3,\"baseline\":\"copying\",\"baseline_median\":100.0,\"ratio\":0.905},{\"name\":\"b\",\"unit\":\"ms\",\"median\":2.0,\"p10\":1,\"p90\":3,\"repeats\":3,\"baseline\":\"half\",\"baseline_median\":4.0,\"ratio\":0.5}]}" ;;
esac'
program run/gpu 'echo "100%: Checks: 7, Failures: 0, Errors: 0"'
export PATH=$work/smi:$PATH
"$check" --programs "$work/run" --out "$work/out" >/dev/null || complain "passing tests fail"
grep -q '^{"device": "Some GPU", "driver": "1.0",' "$work/out/gpu-check.json" || complain "the device is not named"
grep -q '"tests": {"checks": 7, "failures": 0, "errors": 0}, "bench": {"results":.*"ratio":0.5}]}}$' "$work/out/gpu-check.json" ||
    complain "tests and figures are not written down"
diff - "$work/out/gpu-check.txt" <<'END'
Some GPU, driver 1.0

| Case | Median | Baseline in the same run | Ratio |
|---|---|---|---|
| `a` | 90.5 GB/s | copying: 100 | 0.905 |
| `b` | 2 ms | half: 4 | 0.500 |
END

# --- a test that fails, a benchmark that can't run
program run/gpu 'echo "50%: Checks: 2, Failures: 1, Errors: 0"; exit 1'
! "$check" --programs "$work/run" --out "$work/out" >/dev/null || complain "a failing test passes"
grep -q '"failures": 1' "$work/out/gpu-check.json" || complain "the failure is not written down"
program run/gpu 'echo "100%: Checks: 2, Failures: 0, Errors: 0"'
program run/kvkeep '[[ $1 == --version ]] && echo 1 && exit 0; echo "no" >&2; exit 1'
! "$check" --programs "$work/run" --out "$work/out" >/dev/null 2>&1 || complain "a failing benchmark passes"
grep -q '"bench": null}$' "$work/out/gpu-check.json" || complain "figures without a benchmark"
