#!/usr/bin/env bash
# `kvkeep replay --mode evict`: made masses and masses from files, what it prints, and bad usage and files.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
source "$(dirname "$0")/common.bash"

evict() { # ARGUMENT...
    succeeds replay --mode evict "$@"
}

refuses() { # LINE ARGUMENT...
    local line=$1
    shift
    refused 2 "$line" replay --json --mode evict --plot out.svg "$@"
    [[ -z $(find . -name 'out*') ]] || complain "leaves a file behind: $*"
    rm -f out*
}

# What does not depend on the clock.
results() { # ARGUMENT...
    evict --json --steps 512 "$@"
    sed -E 's/"ns_per_step":[^,}]*//g' <<<"$out"
}

# ---- Made masses

evict --json --steps 512 --groups 2 --policy h2o:sinks=16 --budget 192
[[ $out == '{"format":"generated","mode":"evict","steps":512,"groups":2,"page_tokens":16,"pages":32,"needles":'*',"results":['*']}' ]] ||
    complain "not the documented object: $out"
rows=$(sed -E 's/.*"results":\[(.*)\]\}/\1/; s/\},\{/}\n{/g' <<<"$out")
keys="policy budget_tokens budget_pages kept_share retained_mean retained_p5 retained_min retained_all_mean retained_all_p5 \
retained_all_min ratio_to_optimum churn_per_1k_tokens needle_recall pages_mean pages_max evicted_pages ns_per_step"
while read -r row; do
    is_json_object "$row" || complain "is no JSON object: $row"
    [[ $(keys_of "$row") == "$keys" ]] || complain "keys '$(keys_of "$row")' instead of '$keys'"
    [[ $(value_of budget_pages "$row") == 12 ]] || complain "192 tokens are not 12 pages: $row"
    [[ $(value_of evicted_pages "$row") == 40 ]] || complain "2 groups of 32 pages keep 12 each: $row"
done <<<"$rows"
names=$(grep -oE '"policy":"[^"]*"' <<<"$out" | tr '\n' ' ')
[[ $names == '"policy":"optimum" "policy":"greedy" "policy":"h2o:sinks=16" ' ]] || complain "rows of $names"
[[ $(head -n 1 <<<"$rows") == *'"ratio_to_optimum":1.0,'*'"ns_per_step":null}' ]] || complain "the optimum is $(head -n 1 <<<"$rows")"

# Every policy at two budgets, each below the optimum and the greedy bound; and a line with names.
evict --steps 512
[[ $(wc -l <<<"$out") -eq 25 ]] || complain "$(wc -l <<<"$out") lines instead of 1 + 2 x (2 + 10)"
[[ $(grep -cE '^[a-z0-9]+ +102 ' <<<"$out") -eq 12 ]] || complain "not 12 rows at 20 % of 512 tokens"
[[ $(results --policy all --budget 20% --budget 36%) == "$(results)" ]] || complain "the defaults are not all, 20% and 36%"
[[ $(results --seed 7) == "$(results --seed 7)" ]] || complain "one seed, two results"
[[ $(results --seed 7) != "$(results --seed 8)" ]] || complain "two seeds, one result"
[[ $(results --audit --policy keep) == "$(results --policy keep)" ]] || complain "the audit changes results"
[[ $(results --policy h2o-4-512-512) == "$(results --policy h2o)" ]] || complain "a preset is not what it stands for"
evict --json --page-tokens 4 --steps 512 --policy full --budget 100%
[[ $out == *'"retained_mean":null,"retained_p5":null,"retained_min":null,"retained_all_mean":1.0'* ]] ||
    complain "a budget that is never reached: $out"

if command -v gnuplot >/dev/null; then
    for budgets in "--budget 20%" "--budget 20% --budget 50%" "--budget 100%"; do
        # shellcheck disable=SC2086 # several arguments
        evict --steps 512 --policy h2o --policy keep $budgets --plot plot.svg
        grep -q "</svg>" plot.svg || complain "no drawing of $budgets"
        rm plot.svg
    done
fi

# ---- Masses from files: six queries over pages of one token, as in unit/test_trace_mass_replay.c

floats() { # VALUE...: of 4 bytes, the lowest first
    local value
    for value in "$@"; do
        case $value in
        1) printf '\x00\x00\x80\x3f' ;;
        1/2) printf '\x00\x00\x00\x3f' ;;
        1/4) printf '\x00\x00\x80\x3e' ;;
        1/8) printf '\x00\x00\x00\x3e' ;;
        0) printf '\x00\x00\x00\x00' ;;
        nan) printf '\x00\x00\xc0\x7f' ;;
        esac
    done
}

npy() { # SHAPE VALUE...
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': $1, }"
    shift
    # shellcheck disable=SC2059 # the length is a byte
    printf "\x93NUMPY\x01\x00\x$(printf %02x ${#header})\x00"
    printf '%s' "$header"
    floats "$@"
}

about() { # MORE
    printf '{"page_tokens": 1, "groups": 1, "heads": 4, "aggregation": "mean"%s}' "$1"
}

six=(1 nan nan nan nan nan 1/2 1/2 nan nan nan nan 1/4 1/4 1/2 nan nan nan 1/2 1/4 1/8 1/8 nan nan
    1/2 1/8 0 1/8 1/4 nan 1/4 0 1/4 0 1/4 1/4)
mkdir masses
npy "(6, 1, 6)" "${six[@]}" >masses/six.npy
about "" >masses/six.json
evict --json --policy window --budget 3 --audit masses/six.npy
[[ $out == '{"format":"npy","mode":"evict","steps":6,"groups":1,"page_tokens":1,"pages":6,"needles":0,"results":['* ]] ||
    complain "a file: $out"
window=$(grep -oE '\{"policy":"window"[^}]*\}' <<<"$out")
[[ $(value_of retained_min "$window") == 0.375 ]] || complain "the window keeps $window"
[[ $(value_of needle_recall "$window") == null ]] || complain "needles in a file: $window"
[[ $(value_of churn_per_1k_tokens "$window") == 500.0 ]] || complain "churn of $window"
evict --policy keep:sinks=0 --budget 50% masses/six.npy
cp masses/six.npy masses/peaks.npy
about ', "peaks": "peaks.npy"' >masses/six.json
evict --policy keep:sinks=0:importance=1 --policy keep:sinks=0:importance=2 --budget 4 --audit masses/six.npy

# ---- Bad usage

refuses "kvkeep replay: field --policy: 'lfu' is neither a policy nor a preset" --policy lfu
refuses "kvkeep replay: field --policy: ..." --policy h2o:heavy=-1
for bad in 0 -1 1.5 x 0% 101% % ""; do
    refuses "kvkeep replay: field --budget: '$bad' is neither a number of tokens nor a share above 0 up to 100 percent" --budget "$bad"
done
refuses "generated: field budget: 15 tokens are no page of 16" --budget 15
refuses "generated: field budget: 16 tokens, in pages of 16, are too few for streaming: ..." --budget 16
refuses "kvkeep replay: field --steps: '0' is too small (1 .. 16777216)" --steps 0
refuses "kvkeep replay: field --groups: '1025' is too large (1 .. 1024)" --groups 1025
refuses "kvkeep replay: field --pages: means nothing in mode evict" --pages 9
refuses "kvkeep replay: field --print: means nothing in mode evict" --print
refuses "kvkeep replay: field --record: means nothing in mode evict" --record out.jsonl
refuses "kvkeep replay: field masses/six.npy: a second file: mode evict takes one" masses/six.npy masses/six.npy
refuses "kvkeep replay: field --steps: means nothing for a file of masses" --steps 9 masses/six.npy
refuses "kvkeep replay: field --seed: means nothing for a file of masses" --seed 9 masses/six.npy
refuses "kvkeep replay: field --groups: means nothing for a file of masses" --groups 9 masses/six.npy
refuses "kvkeep replay: field --page-tokens: means nothing for a file of masses" --page-tokens 16 masses/six.npy
for option in "--policy h2o" "--budget 20%" "--steps 9" "--groups 2"; do
    # shellcheck disable=SC2086 # an option with its value
    refused 2 "kvkeep replay: field ${option% *}: goes with mode evict only" replay $option
done
refused 1 "generated: its optimum needs 5 MiB, more than the memory allowed" replay --mode evict --groups 40 --memory-limit 1

# ---- Bad files

refuses "-: must be named FILE.npy, as FILE.json beside it says what it holds" -
refuses "masses: must be named FILE.npy, as FILE.json beside it says what it holds" masses
refuses "absent.json: cannot open: No such file or directory" absent.npy
echo '{"page_tokens": 16}' >bad.json
refuses "bad.json: field groups: missing" bad.npy
about "" >bad.json
refuses "bad.npy: cannot open: No such file or directory" bad.npy
mkdir bad.npy
refuses "bad.npy: is a directory" bad.npy
rmdir bad.npy
: >bad.npy
refuses "bad.npy: ends within its header" bad.npy
head -c 100000 /dev/zero >bad.npy
refuses "bad.npy: is no .npy file" bad.npy
head -c 150 masses/six.npy >bad.npy
refuses "bad.npy: field shape: asks for 144 bytes of values, the file has ..." bad.npy
npy "(6, 2, 3)" "${six[@]}" >bad.npy
refuses "bad.npy: field shape: has 2 groups, the JSON file beside it says 1" bad.npy
npy "(4294967296, 1, 4294967296)" >bad.npy
refuses "bad.npy: field shape: is too large" bad.npy
npy "(6, 1, 6)" "${six[@]:0:35}" nan >bad.npy
refuses "bad.npy: field [5][0][5]: is nan: a mass is from 0 to 1" --policy window --budget 3 bad.npy
npy "(6, 1, 6)" "${six[@]:0:30}" 1 "${six[@]:31}" >bad.npy
refuses "bad.npy: field [5][0]: adds up to 1.75, more than 1" --policy window --budget 3 bad.npy
about ', "peaks": "/etc/passwd"' >bad.json
refuses "bad.json: field peaks: is not the name of a file beside it" bad.npy
about ', "peaks": "none.npy"' >bad.json
refuses "none.npy: cannot open: No such file or directory" bad.npy

finish
