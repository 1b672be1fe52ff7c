#!/usr/bin/env bash
# `kvkeep generate` on the real model.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
[[ -n ${KVKEEP_MODEL-} ]] || {
    echo "skipped: KVKEEP_MODEL names no model; tools/model-fetch prints the path of one"
    exit 77
}
source "$(dirname "$0")/common.bash"
export OMP_WAIT_POLICY=passive # a busy machine is no failure

succeeds generate --max-tokens 12 "What is the capital of France?"
[[ $out == *Paris* ]] || complain "does not know Paris: $out"
answer=$out
OMP_NUM_THREADS=1 succeeds generate --max-tokens 12 "What is the capital of France?"
[[ $out == "$answer" ]] || complain "one thread says '$out'"
[[ $(printf 'What is the capital of France?' | "$KVKEEP" generate --max-tokens 12 -) == "$answer" ]] || complain "from a pipe it is another"

# One object, and the pages of a budget.
numbers="one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen, "
succeeds generate --json --raw --max-tokens 40 --policy h2o --budget 64 "$numbers"
is_json_object "$out" || complain "is no JSON object: $out"
keys="model policy budget_tokens text stopped_by prompt_tokens tokens pages_kept pages_evicted evicted_mass kv_bytes \
prompt_tokens_per_s tokens_per_s"
[[ $(keys_of "$out") == "$keys" ]] || complain "keys '$(keys_of "$out")' instead of '$keys'"
[[ $(value_of tokens "$out") == 40 && $(value_of pages_kept "$out") -le 120 ]] || complain "a budget of 4 pages: $out"
[[ $(value_of pages_evicted "$out") -gt 0 ]] || complain "nothing was evicted: $out"
run generate --raw --max-tokens 20 --budget 64 --show-pages "$numbers"
[[ $status -eq 0 && $err == "token "*"#"* ]] || complain "no pages shown: $err"

# Chance comes from the seed.
warm() { # SEED
    succeeds generate --raw --temperature 1.5 --top-k 50 --top-p 0.95 --seed "$1" --max-tokens 16 "Once upon"
}
warm 1
one=$out
warm 1
[[ $out == "$one" ]] || complain "one seed, two texts"
warm 2
[[ $out != "$one" ]] || complain "two seeds, one text"

succeeds generate --max-tokens 8 --system "You only speak French." "Good morning."
refused 2 "kvkeep generate: field PROMPT: is empty" generate --raw ""
refused 2 "policy: keep: a budget of 16 tokens ..." generate --budget 16 Hello
if [[ -w /dev/full ]]; then
    rc=0
    "$KVKEEP" generate --max-tokens 4 Hello >/dev/full 2>.err || rc=$?
    [[ $rc -eq 1 && $(wc -l <.err) -eq 1 ]] || complain "a full disk: $rc $(cat .err)"
fi

finish
