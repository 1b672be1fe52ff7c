#!/usr/bin/env bash
# `kvkeep eval` passkey, niah, multi-turn and calibrate on the real model: short prompts, few of them.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
[[ -n ${KVKEEP_MODEL-} ]] || {
    echo "skipped: KVKEEP_MODEL names no model; tools/model-fetch prints the path of one"
    exit 77
}
source "$(dirname "$0")/common.bash"
export OMP_WAIT_POLICY=passive # a busy machine is no failure
profiles=$(realpath "$(dirname "$0")/../../tools/kvkeep/profiles" 2>/dev/null || true)

rows() { # the objects in "results", a line each, without their lists
    sed -E 's/.*"results":\[(.*)\]\}/\1/; s/,"depths":\[[^]]*\]//g; s/\},\{/}\n{/g' <<<"$out"
}

for _ in {1..30}; do
    echo "The crew of the ship had little to do on that day, and the captain read to them from a book about whales."
done >text

# ---- passkey

passkey() { # ARGUMENT...
    succeeds eval passkey --json --length 128 --depths 2 --repeats 1 "$@"
}

passkey --policy full --policy window --budget 48
[[ $out == '{"model":"'*'.gguf","keys":"digits","page_tokens":16,"results":['*']}' ]] || complain "not the documented object: $out"
keys="policy budget_tokens kv_type kept_share question haystack wording stated length prompts exact digits_mean recall \
ci95_low ci95_high kv_bytes_peak"
while read -r row; do
    is_json_object "$row" || complain "is no JSON object: $row"
    [[ $(keys_of "$row") == "$keys" ]] || complain "keys '$(keys_of "$row")' instead of '$keys'"
done < <(rows)
[[ $(rows | wc -l) -eq 4 ]] || complain "$(rows | wc -l) rows instead of two policies, stated once and twice"
full=$(rows | sed -n 1p) window=$(rows | sed -n 2p)
[[ $(value_of recall "$full") == 1.0 && $(value_of ci95_high "$full") == 1.0 ]] || complain "full forgets: $full"
[[ $(value_of exact "$window") == 1 ]] || complain "the window has the late key and not the early one: $window"
# 30 layers of 3 pages of 16 tokens, of 2 x 3 heads of 64 floats: the budget and no token more
[[ $(value_of kv_bytes_peak "$window") == $((30 * 48 * 2 * 3 * 64 * 4)) ]] || complain "the window holds $(value_of kv_bytes_peak "$window") bytes"

# The same again, with one thread, and in other company; what is in the file is not computed again.
first=$out
OMP_NUM_THREADS=1 passkey --policy full --policy window --budget 48 --resume results.json
[[ $out == "$first" ]] || complain "one thread, another result"
chmod 400 results.json
passkey --policy window --budget 48 --resume results.json
[[ $(rows) == "$(sed -n '1p;2p' <<<"$(out=$first rows | grep '"policy":"window"')")" ]] || complain "the window alone is another: $(rows)"
passkey --policy window --budget 48 --seed 2 --stated 1
[[ $(rows | wc -l) -eq 1 ]] || complain "more than is asked for: $(rows)"

# When the question is seen; words; a wording and a haystack of one's own; a map.
succeeds eval niah --json --length 112 --depths 1 --repeats 2 --haystack text --needle ' The dog is called {KEY}.' \
    --question ' What is the dog called? The dog is called' --stated 1 --ask visible --ask during --ask hidden \
    --policy keep --policy snapkv --budget 50% --keys words --plot map.svg
[[ $(rows | wc -l) -eq 6 && $(rows | grep -c '"haystack":"text","wording":"own"') -eq 6 ]] || complain "not six rows: $(rows)"
while read -r row; do # seen whole, a prompt is held whole
    bytes=$(value_of kv_bytes_peak "$row")
    [[ $row == *'"question":"visible"'* ]] && whole=1 || whole=0
    [[ $((bytes > 30 * 64 * 2 * 3 * 64 * 4)) -eq $whole ]] || complain "holds $bytes bytes: $row"
done < <(rows)
[[ $(tail -c 20 map.svg) == *"</svg>" ]] || complain "no whole drawing"

# ---- multi-turn

succeeds eval multi-turn --json --length 200 --repeats 1 --policy full --policy window --budget 80
[[ $(rows | grep -c '"haystack":"customer service"') -eq 4 ]] || complain "not two kinds of two policies: $(rows)"
[[ $(rows | grep '"policy":"full"' | grep -c '"recall":1.0') -eq 2 ]] || complain "full forgets: $(rows)"
succeeds eval multi-turn --length 200 --repeats 1 --policy window --budget 80
[[ $(wc -l <<<"$out") -eq 3 ]] || complain "not a line of names and two rows: $out"

# ---- calibrate, and its profile

succeeds eval calibrate --json --length 144 --repeats 1 --tokens 96 --budget 50% --haystack filler --write mine.json text
[[ $out == '{"format":"kvkeep-profile","version":1,"model":"'*'"policy":"keep'* ]] || complain "no profile: $out"
passkey --profile mine.json --policy keep --budget 64 --stated 1
mine=$(grep -oE '"policy": "[^"]*"' mine.json | cut -d'"' -f4)
[[ $(rows) == '{"policy":"'"$mine"'"'* ]] || complain "the profile's policy '$mine' is not taken: $(rows)"
if [[ -n $profiles ]]; then
    passkey --profile "$profiles/smollm2-135m-instruct.json" --policy keep --budget 64 --stated 1
fi

# ---- Refusals

refused 2 "text: has ..." eval niah --haystack text --length 8000 --policy keep
sed 's/"layers": 30/"layers": 31/' mine.json >other.json
refused 2 "other.json: is of a model of 31 layers and 9 heads, not of 30 and 9" eval passkey --profile other.json
refused 2 "the needle: of ..." eval passkey --length 8 --policy full
refused 2 "policy: ..." eval passkey --policy keep --budget 16

finish
