#!/usr/bin/env bash
# What `kvkeep` prints: JSON with exactly the documented keys, tables, lines per request, help.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
manual=$(realpath "$(dirname "$0")/../../docs/man/kvkeep.1")
source "$(dirname "$0")/common.bash"

{ mooncake_line 0 1300 3 "1, 2, 3" && mooncake_line 10 1300 2 "1, 2, 3"; } >blocks.jsonl
printf 'arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4,3\n0.5,9,2\n' >vidur.csv

json() { # KEYS ARGUMENT...
    local keys=$1
    shift
    succeeds replay --json "$@"
    is_json_object "$out" || complain "is no JSON object: $out"
    [[ $(keys_of "$out") == "$keys" ]] || complain "keys '$(keys_of "$out")' instead of '$keys'"
}

is() { # KEY VALUE
    [[ $(value_of "$1" "$out") == "$2" ]] || complain "$1 is $(value_of "$1" "$out") instead of $2"
}

prefix_keys="format mode requests failed_requests page_tokens pages reclaim page_refs page_hits token_hits unique_pages reclaimed_pages \
hit_ratio_pages hit_ratio_tokens elapsed_s refs_per_s"
json "$prefix_keys" blocks.jsonl
is format '"mooncake"'
is mode '"prefix"'
is requests 2
is pages '"unlimited"'
is page_tokens 512
is page_refs 6
is page_hits 3
is token_hits 1300
is unique_pages 3
is hit_ratio_pages 0.5
json "$prefix_keys" --pages 10 blocks.jsonl
is pages 10
is unique_pages 3
json "$prefix_keys belady_hits" --pages 10 --belady blocks.jsonl
is belady_hits 3
json "$prefix_keys belady_hits" --mode flat --reclaim lfu --pages 10 --belady blocks.jsonl
is mode '"flat"'
is reclaim '"lfu"'
is page_hits 3
is token_hits 1300
json "$prefix_keys"
is format '"generated"'
is requests 2000
json "$prefix_keys" --requests 50
is requests 50
json "$prefix_keys" --requests 1 blocks.jsonl
is requests 1

# Many pools: a list of results in one object.
succeeds replay --reclaim all --pages 3 --json blocks.jsonl
[[ $out == '{"results":[{"reclaim":"belady","pages":3,"page_hits":3,"token_hits":null,"reclaimed_pages":null,'*'"reclaim":"s3fifo"'*']}' ]] ||
    complain "--reclaim all: $out"
for mode in prefix flat; do
    succeeds replay --curve=2 --mode $mode --json blocks.jsonl
    [[ $out == '{"results":[{"pages":'*',"page_hits":'*',"token_hits":'*',"hit_ratio_pages":'*',"hit_ratio_tokens":'*']}' ]] ||
        complain "--curve: $out"
    [[ $(grep -o '"pages"' <<<"$out" | wc -l) -eq 2 ]] || complain "not two sizes: $out"
done
succeeds replay --curve --reclaim fifo blocks.jsonl
[[ $(wc -l <<<"$out") -eq 3 ]] || complain "a table of the sizes 3 and 4: $out"
[[ $("$KVKEEP" replay --curve --json) == "$("$KVKEEP" replay --curve --json)" ]] || complain "two curves of one workload"

# Of two requests that need 5 pages together, 3 and 2 alone, in pools of 1, 3, 4 and 5: see unit/test_trace_pools.c.
printf 'arrived_at,num_prefill_tokens,num_decode_tokens\n0,8,2\n5,8,1\n' >together.csv
row() { # PAGES SHARE TOKENS_PER_S WAIT_P99 PREEMPTIONS RECOMPUTED SWAPPED REJECTED MAKESPAN
    printf '{"pages":%s,"share_of_peak":%s,"output_tokens_per_s":%s,"admission_wait_s_p50":0.0,"admission_wait_s_p99":%s,' "${@:1:4}"
    printf '"preemptions":%s,"recomputed_tokens":%s,"swapped_pages":%s,"rejected":%s,"makespan_s":%s}' "${@:5}"
}
pools() { # SWAPPED RECOMPUTED
    echo "{\"results\":[$(row 1 0.2 0.0 0.0 0 0 0 2 0.0),$(row 3 0.6 0.1 15.0 0 0 0 0 30.0),$(
        row 4 0.8 0.1 0.0 1 "$2" "$1" 0 30.0),$(row 5 1.0 0.15 0.0 0 0 0 0 20.0)]}"
}
short() { # cuts what doubles cannot say
    sed -E 's/([0-9]\.[0-9]*[1-9])0{6,}[0-9]+/\1/g; s/0\.59999999999999998/0.6/; s/0\.14999999999999999/0.15/' <<<"$1"
}
in_pools=(replay --mode timed --page-tokens 4 --ms-per-token 10000 --watermark 0 together.csv)
succeeds "${in_pools[@]}" --curve=4 --json
[[ $(short "$out") == "$(pools 0 8)" ]] || complain "timed --curve: $out"
succeeds "${in_pools[@]}" --curve=4 --json --preempt swap
[[ $(short "$out") == "$(pools 2 0)" ]] || complain "timed --curve --preempt swap: $out"
succeeds "${in_pools[@]}" --curve
[[ $(wc -l <<<"$out") -eq 6 ]] || complain "a table of the sizes 1 to 5: $out"
succeeds replay --mode timed --curve --requests 200
[[ $(wc -l <<<"$out") -eq 17 ]] || complain "a table of 16 sizes: $out"

pressure_keys="rejected preemptions recomputed_tokens swapped_pages admission_wait_s_p50 admission_wait_s_p99 makespan_s \
waste_reserved usage_when_reclaiming_p50 elapsed_s"
timed_keys="format mode requests failed_requests page_tokens pages peak_pages peak_sequences page_allocations mean_utilisation \
waste_internal $pressure_keys"
json "$timed_keys" --pages 1 --page-tokens 8 vidur.csv
is rejected 1
is requests 2
is pages 1
printf 'arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,16,30\n0.0,16,30\n' >two.csv
json "$timed_keys" --pages 4 --watermark 25% two.csv
is preemptions 1
is swapped_pages 0
json "$timed_keys" --pages 4 --watermark 0 --preempt swap --host-pages 9 --chunk 8 two.csv
is recomputed_tokens 0
json "$timed_keys" vidur.csv
is mode '"timed"'
is peak_sequences 1
is page_tokens 16
json "format mode requests failed_requests page_tokens pages pages_total waste_tokens waste_fraction elapsed_s" --mode lengths vidur.csv
is pages_total 2
is waste_tokens 14

printf 'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,0,472,x\n6,GPT-4,1,2,3,x\n' >burst.csv
succeeds replay --json burst.csv
is format '"burstgpt"'
is requests 1
is failed_requests 1

cat >session.json <<'END'
{"block_size": 64, "hash_id_scope": "local", "requests": [
{"t": 0, "type": "n", "in": 64, "out": 1, "hash_ids": [1], "api_time": 1},
{"t": 3.5, "type": "s", "in": 65, "out": 1, "hash_ids": [1], "api_time": 1, "think_time": 2.5}]}
END
json "format mode requests failed_requests page_tokens pages page_refs page_hits token_hits hit_ratio_pages peak_pages \
peak_sequences page_allocations reclaimed_pages $pressure_keys" --mode multi-turn session.json
is format '"kv_cache_tester"'
is mode '"multi-turn"'
is page_hits 1
is makespan_s 4.5
json "$prefix_keys" session.json session.json
is page_hits 2
is unique_pages 2
succeeds replay --mode multi-turn --print session.json
[[ $(tail -n 1 <<<"$out") == '{"request":2,"line":0,"input_tokens":65,"output_tokens":1,"pages":1,"page_hits":1,"token_hits":64,"start_us":3500000}' ]] ||
    complain "--print: $out"
succeeds replay --json --mode multi-turn session.json session.json
is peak_sequences 2
succeeds replay --json --mode multi-turn --rate 0.001 --seed 1 session.json session.json
is peak_sequences 1

# ---- The same seed gives the same results, another one others

results() { # ARGUMENT...
    succeeds replay --json --requests 300 "$@"
    sed -E 's/"(elapsed_s|refs_per_s)":[^,}]*//g' <<<"$out"
}
[[ $(results --seed 7) == "$(results --seed 7)" ]] || complain "one seed, two results"
[[ $(results --seed 7) != "$(results --seed 8)" ]] || complain "two seeds, one result"
[[ $(results --seed 7 --mode timed --audit) == "$(results --seed 7 --mode timed)" ]] || complain "the audit changes results"

# ---- Tables, lines per request

succeeds replay blocks.jsonl
[[ $out == *"token hits         1300"* ]] || complain "the table has no token hits: $out"
[[ $out != *"{"* ]] || complain "the table holds JSON"
for mode in prefix flat timed lengths; do
    succeeds replay --mode $mode --print blocks.jsonl
    [[ $(wc -l <<<"$out") -eq 2 ]] || complain "--print gives not one line per request: $out"
    while IFS= read -r line; do
        is_json_object "$line" || complain "is no JSON object: $line"
    done <<<"$out"
done
succeeds replay --print blocks.jsonl
[[ $(tail -n 1 <<<"$out") == '{"request":2,"line":2,"input_tokens":1300,"output_tokens":2,"pages":3,"page_hits":3,"token_hits":1300}' ]] ||
    complain "--print: $out"

# ---- Help, version, info

succeeds --help
[[ $out == *replay*bench*info* ]] || complain "the help names not every command"
succeeds --version
[[ $out =~ ^kvkeep\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || complain "the version is '$out'"
for command in replay bench info; do
    succeeds $command --help
    [[ $out == *--json* ]] || complain "$command --help names no --json"
    while read -r option; do
        grep -qE "^\.(It|Op) Fl -${option#--}( |\$)" "$manual" || complain "the manual has no $option, kvkeep $command has"
    done < <(grep -oE -- '--[a-z][a-z-]*' <<<"$out" | grep -vx -- --help | sort -u)
done
succeeds bench --help
suites=$(sed -nE '1,2s/.*\[([a-z]+(\|[a-z]+)+)\]$/\1/p' <<<"$out")
[[ -n $suites ]] || complain "bench --help names no suite"
for suite in ${suites//|/ }; do
    grep -qE "^\.Cm $suite\b" "$manual" || complain "the manual has no suite $suite"
done
succeeds info --json
[[ $out == *,\"policies\":\[*\],\"presets\":\[*\]\} ]] || complain "info has no policies and presets" # policies.sh reads them
out="${out%%,\"policies\":*}}"
is_json_object "$out" || complain "is no JSON object: $out"
[[ $(keys_of "$out") == "version build_type compiler allocator xxhash jansson cpu_avx2 cpu_avx512 cuda" ]] ||
    complain "info has the keys $(keys_of "$out")"
succeeds info

finish
