#!/usr/bin/env bash
# `kvkeep eval` on the real model: what it prints, that it is the same each time, and figures of an independent program.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
[[ -n ${KVKEEP_MODEL-} ]] || {
    echo "skipped: KVKEEP_MODEL names no model; tools/model-fetch prints the path of one"
    exit 77
}
source "$(dirname "$0")/common.bash"
export OMP_WAIT_POLICY=passive # a busy machine is no failure

for i in {1..40}; do
    echo "In year $i the ship sailed with $((i * i)) men, and $((i + 7)) of them came home from the ice of the north."
done >text

# Without what depends on the clock.
results() {
    sed -E 's/"tokens_per_s":[^,}]*//g' <<<"$out"
}

rows() { # the objects in "results", a line each
    sed -E 's/.*"results":\[(.*)\]\}/\1/; s/\},\{/}\n{/g' <<<"$out"
}

# near VALUE WANTED BY
near() {
    awk -v a="$1" -v b="$2" -v by="$3" 'BEGIN { d = a - b; exit !(d <= by && -d <= by) }'
}

ppl() { # ARGUMENT...
    succeeds eval ppl --json --tokens 160 "$@"
}

# ---- ppl

ppl --policy h2o --policy window --budget 64 text
[[ $out == '{"model":"'*'.gguf","text":"text","tokens":160,"results":['*']}' ]] || complain "not the documented object: $out"
keys="policy budget_tokens kv_type kept_share mean_nll perplexity stderr mean_nll_active perplexity_active stderr_active \
perplexity_second_half change change_stderr change_active change_active_stderr retained_mass churn_per_1k kv_bytes_peak tokens_per_s"
while read -r row; do
    is_json_object "$row" || complain "is no JSON object: $row"
    [[ $(keys_of "$row") == "$keys" ]] || complain "keys '$(keys_of "$row")' instead of '$keys'"
done < <(rows)
[[ $(rows | wc -l) -eq 3 ]] || complain "$(rows | wc -l) rows instead of full and two"
full=$(rows | sed -n 1p) h2o=$(rows | sed -n 2p) window=$(rows | sed -n 3p)
[[ $full == '{"policy":"full"'* && $(value_of change "$full") == 0.0 ]] || complain "full is not first: $full"
near "$(value_of retained_mass "$full")" 1 1e-6 || complain "full retains $(value_of retained_mass "$full")"
near "$(value_of retained_mass "$h2o")" 0.85 0.15 || complain "h2o retains $(value_of retained_mass "$h2o")"
# 30 layers of 4 pages of 16 tokens, of 2 x 3 heads of 64 floats: the budget and no token more
[[ $(value_of kv_bytes_peak "$h2o") == $((30 * 64 * 2 * 3 * 64 * 4)) ]] || complain "h2o holds $(value_of kv_bytes_peak "$h2o") bytes"
[[ $(value_of kept_share "$h2o") == 0.4* ]] || complain "h2o keeps $(value_of kept_share "$h2o")"
awk -v w="$(value_of perplexity "$window")" -v h="$(value_of perplexity "$h2o")" 'BEGIN { exit !(w > 1.05 * h) }' ||
    complain "the window does not break down: $window"

# The same again, and with one thread.
first=$(results)
ppl --policy h2o --policy window --budget 64 text
[[ $(results) == "$first" ]] || complain "two runs, two results"
OMP_NUM_THREADS=1 ppl --policy h2o --policy window --budget 64 text
[[ $(results) == "$first" ]] || complain "one thread, another result"

# In other company a configuration gives the same; what is in the file is not computed again.
ppl --policy h2o --budget 64 --resume results.json text
[[ $(results) == "${first%,\{\"policy\":\"window\"*}]}" ]] || complain "h2o alone is another: $(results)"
before=$out
ppl --policy h2o --budget 64 --resume results.json text
[[ $out == "$before" ]] || complain "a result of the file was computed again"
ppl --policy h2o --policy window --budget 64 --resume results.json text
[[ $(results) == "$first" ]] || complain "going on gives another result"

# Chunks hold one chunk more than the budget; KV of fewer bits; other pages; one table for all layers.
ppl --policy h2o --budget 64 --chunk 32 --kv-type int8 --groups 1 text
h2o=$(rows | sed -n 2p)
[[ $(value_of kv_bytes_peak "$h2o") -le $((30 * 96 * 2 * 3 * (64 + 4))) ]] || complain "holds more than the budget and a chunk: $h2o"
ppl --policy streaming --budget 50% --page-tokens 8 --offset 20 text
[[ $(value_of budget_tokens "$(rows | sed -n 2p)") == 80 ]] || complain "50 % of 160 tokens: $(rows)"
succeeds eval ppl --tokens 160 --policy h2o --budget 64 text
[[ $(wc -l <<<"$out") -eq 3 ]] || complain "not a line of names and two rows: $out"

if [[ -r $KVK_SHARED_DIR/text/moby_dick.txt ]]; then # an independent program's figures (golden/smollm2.json)
    succeeds eval ppl --json --tokens 512 --policy window --policy h2o --budget 128 "$KVK_SHARED_DIR/text/moby_dick.txt"
    near "$(value_of mean_nll "$(rows | sed -n 2p)")" 5.040196 2e-4 || complain "window: $(rows | sed -n 2p)"
    near "$(value_of mean_nll "$(rows | sed -n 3p)")" 4.509794 2e-4 || complain "h2o: $(rows | sed -n 3p)"
    near "$(value_of mean_nll_active "$(rows | sed -n 3p)")" 4.499978 2e-4 || complain "h2o where active: $(rows | sed -n 3p)"
fi

# ---- compare

succeeds eval compare --json --tokens 160 --policy h2o --budget 40% --kv-type fp16 --memory 1024 text
h2o=$(rows | sed -n 2p)
[[ $(keys_of "$h2o") == "$keys kv_bytes_at_context saved_share requests recall pareto" ]] || complain "keys '$(keys_of "$h2o")'"
[[ $(value_of kv_bytes_at_context "$h2o") == $((3264 * 30 * 2 * 3 * 64 * 2)) ]] || complain "204 pages of fp16: $h2o"
[[ $(value_of requests "$h2o") == 14 ]] || complain "1 GiB fits $(value_of requests "$h2o") requests"
succeeds eval compare --json --suggest --loss 50% --tokens 160 --policy h2o --budget 64 --budget 96 text
[[ $(rows) == '{"policy":"h2o","suggested":{"budget_tokens":'*'"measured":['* ]] || complain "no suggestion: $out"
succeeds eval compare --suggest --loss 50% --tokens 160 --policy h2o --budget 64 text
if command -v gnuplot >/dev/null; then
    succeeds eval compare --tokens 160 --curve --policy h2o --budget 40% --budget 60% --plot plot.svg text
    grep -q "</svg>" plot.svg || complain "no drawing"
    grep -q "Keys found" plot.svg && complain "recall is drawn of a text that is too short for it"
    succeeds eval compare --tokens 256 --curve --policy streaming --budget 50% --plot plot.svg text
    grep -q "Keys found" plot.svg || complain "recall is not drawn"
fi

# ---- record

succeeds eval record --json --tokens 100 --out masses text
succeeds replay --mode evict --policy h2o --budget 48 --json masses.npy
[[ $out == '{"format":"npy","mode":"evict","steps":100,"groups":30,"page_tokens":16,"pages":7,'* ]] || complain "masses: $out"
succeeds eval record --tokens 100 --groups 1 --out one text
succeeds replay --mode evict --policy keep:importance=2 --budget 64 one.npy
refused 2 "kvkeep eval record: field --out: missing: how to name the files" eval record text
refused 2 "kvkeep eval record: field --policy: means nothing here: ..." eval record --policy h2o --out none text
[[ ! -e none.npy ]] || complain "leaves a file behind"

# ---- Bad input

: >empty
printf a >one
refused 2 "empty: is empty" eval ppl empty
refused 2 "one: has one token, too few to measure on" eval ppl one
refused 2 "absent: cannot open: No such file or directory" eval ppl absent
refused 2 "text: has ..." eval ppl --offset 100000 text
refused 2 "policy: streaming: a budget of 16 tokens ..." eval ppl --policy streaming --budget 16 text
refused 2 "kvkeep eval compare: field --suggest: ..." eval compare --suggest --policy full text
refused 2 "kvkeep eval compare: field --suggest: ..." eval compare --suggest --kv-type fp16 --kv-type int8 text
printf 'A character that is cut: \xe2\x82' >bytes
ppl --policy h2o --budget 64 bytes
printf 'No character: \xff' >bytes
refused 2 "text:1: byte 0xFF at offset 14 is not in the model's vocabulary" eval ppl bytes

finish
