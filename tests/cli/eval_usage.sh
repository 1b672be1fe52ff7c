#!/usr/bin/env bash
# `kvkeep eval` and `kvkeep generate`: what they say to bad usage and bad files, and where there is no model.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
source "$(dirname "$0")/common.bash"
unset KVKEEP_MODEL

echo "Some text." >text
: >empty

# ---- Help

for task in ppl compare record; do
    succeeds eval "$task" --help
    [[ $out == *"--budget="*"--policy="*"TEXT"* ]] || complain "no help on $task: $out"
done
succeeds eval --help
[[ $out == *" ppl "*" compare "*" record "*" passkey "*" niah "*" multi-turn "*" calibrate "* ]] || complain "no list of tasks: $out"
succeeds generate --help
[[ $out == *"--max-tokens="*"PROMPT|-"* ]] || complain "no help on generate: $out"

# ---- Bad usage

refused 2 "kvkeep eval: no task given; see kvkeep eval --help" eval
refused 2 "kvkeep eval: no task 'pp'; see kvkeep eval --help" eval pp
for task in ppl compare record; do
    refused 2 "kvkeep eval $task: field TEXT: missing: the file to measure on" eval "$task"
    refused 2 "kvkeep eval $task: field more: an argument too many" eval "$task" text more
    refused 2 "kvkeep eval $task: field --what: not understood; see kvkeep eval $task --help" eval "$task" --what text
done
refused 2 "kvkeep eval ppl: field --policy: 'lfu' is neither a policy nor a preset" eval ppl --policy lfu text
for bad in 0 -1 1.5 x 0% 101% % ""; do
    refused 2 "kvkeep eval ppl: field --budget: '$bad' is neither a number of tokens nor a share above 0 up to 100 percent" \
        eval ppl --budget "$bad" text
done
refused 2 "kvkeep eval ppl: field --kv-type: 'fp4' is not one of fp32, fp16, bf16, fp8, int8 and int4" eval ppl --kv-type fp4 text
refused 2 "kvkeep eval ppl: field --groups: '2' is neither 1 nor layers" eval ppl --groups 2 text
refused 2 "kvkeep eval ppl: field --page-tokens: '0' is too small (1 .. 4096)" eval ppl --page-tokens 0 text
refused 2 "kvkeep eval ppl: field --tokens: 'x' ..." eval ppl --tokens x text
refused 2 "kvkeep eval ppl: field --offset: '-1' is negative ..." eval ppl --offset -1 text
refused 2 "kvkeep eval ppl: field --curve: not understood; ..." eval ppl --curve text
for bad in 0% x 1 -1% 1001%; do
    refused 2 "kvkeep eval compare: field --loss: '$bad' is not a share above 0 up to 1000 percent, such as 1%" \
        eval compare --loss "$bad" text
done
refused 2 "kvkeep eval compare: field --memory: '0' is too small ..." eval compare --memory 0 text
refused 2 "kvkeep eval niah: field --haystack: missing: a text to put the needles into" eval niah --model none.gguf
refused 2 "kvkeep eval niah: field --needle: 'x' has no {KEY}" eval niah --haystack text --needle x --question y
refused 2 "kvkeep eval niah: field --needle: 'x{KEY}' has no --question" eval niah --haystack text --needle 'x{KEY}'
refused 2 "kvkeep eval niah: field --question: 'y' has no --needle" eval niah --haystack text --question y
refused 2 "kvkeep eval passkey: field --wording: 'x' is neither tuning, reported nor the name of a wording" eval passkey --wording x
refused 2 "kvkeep eval passkey: field --ask: 'x' is not one of hidden, visible and during, or one too many" eval passkey --ask x
refused 2 "kvkeep eval passkey: field --keys: 'x' is neither digits nor words" eval passkey --keys x
refused 2 "kvkeep eval passkey: field --stated: '3' is too large (1 .. 2)" eval passkey --stated 3
refused 2 "kvkeep eval passkey: field --length: '0' is too small ..." eval passkey --length 0
refused 2 "kvkeep eval multi-turn: field --haystack: not understood; ..." eval multi-turn --haystack text
refused 2 "kvkeep eval calibrate: field TEXT: missing: the file to measure on" eval calibrate
refused 2 "kvkeep generate: field PROMPT: missing: a text, or - for the standard input" generate
refused 2 "kvkeep generate: field more: an argument too many" generate Hello more
refused 2 "kvkeep generate: field --policy: one policy is enough" generate --policy h2o --policy keep Hello
refused 2 "kvkeep generate: field --budget: one budget is enough" generate --budget 64 --budget 65 Hello
refused 2 "kvkeep generate: field --system: goes with a chat only" generate --raw --system Be Hello
refused 2 "kvkeep generate: field --temperature: '-1' is negative" generate --temperature -1 Hello
refused 2 "kvkeep generate: field --max-tokens: '0' is too small (1 .. 2147483647)" generate --max-tokens 0 Hello

# ---- Models and files that are not there

export KVKEEP_MODEL_DIR=$PWD/none
refused 2 "$PWD/none/SmolLM2-135M-Instruct.Q4_1.gguf: no model there: run tools/model-fetch, or set KVKEEP_MODEL to a GGUF file" eval ppl text
refused 2 "$PWD/none/SmolLM2-135M-Instruct.Q4_1.gguf: no model there: run tools/model-fetch, or set KVKEEP_MODEL to a GGUF file" generate Hello
refused 2 "$PWD/none/SmolLM2-135M-Instruct.Q4_1.gguf: no model there: ..." bench model
KVKEEP_MODEL=empty refused 2 "empty: ..." bench model
refused 2 "none.gguf: ..." eval ppl --model none.gguf text
refused 2 "empty: ..." generate --model empty Hello
refused 2 "none/plot.svg: cannot write: No such file or directory" eval ppl --plot none/plot.svg text
refused 2 "text:1: ..." eval ppl --resume text text
echo '{"kvkeep_eval": 1, "results": {"a": 1}}' >bad.json
refused 2 "bad.json: field a: is no object" eval ppl --resume bad.json text
echo '{"results": {}}' >bad.json
refused 2 "bad.json: field kvkeep_eval: holds no results of kvkeep eval" eval ppl --resume bad.json text

finish
