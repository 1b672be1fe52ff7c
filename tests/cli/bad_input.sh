#!/usr/bin/env bash
# Bad usage and bad input end with exit 2 and one line that names the place, and leave no file behind.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
source "$(dirname "$0")/common.bash"

# ---- Usage

refused 2 "kvkeep: no command given; see kvkeep --help"
refused 2 "kvkeep: no command 'relay'; see kvkeep --help" relay
refused 2 "kvkeep replay: field --nope: not understood; see kvkeep replay --help" replay --nope
refused 2 "kvkeep replay: field --pages: '0' is too small (1 .. 2147483647)" replay --pages 0
refused 2 "kvkeep replay: field --pages: '-5' is negative (1 .. 2147483647)" replay --pages -5
refused 2 "kvkeep replay: field --pages: 'many' is not a whole number (1 .. 2147483647)" replay --pages=many
refused 2 "kvkeep replay: field --pages: '2147483648' is too large (1 .. 2147483647)" replay --pages 2147483648
refused 2 "kvkeep replay: field --page-tokens: '65537' is too large (1 .. 65536)" replay --page-tokens 65537
refused 2 "kvkeep replay: field --speed: '0' is not above 0" replay --speed 0
refused 2 "kvkeep replay: field --speed: 'nan' is not a number" replay --speed nan
refused 2 "kvkeep replay: field --rate: '-1' is negative" replay --rate -1
refused 2 "kvkeep replay: field --ms-per-token: '1e99' is not within 0.001 .. 1e9" replay --ms-per-token 1e99
refused 2 "kvkeep: field mode: 'fast' is none of prefix, timed, lengths, multi-turn, flat, evict" replay --mode fast
refused 2 "kvkeep: field reclaim: 'mru' is none of lru, fifo, lfu, s3fifo, all" replay --reclaim mru
refused 2 "kvkeep replay: field --print: does not go with --json, which prints one object" replay --json --print
refused 2 "kvkeep replay: field --pages: not understood; see kvkeep replay --help" replay --pages
refused 2 "kvkeep bench: no suite 'pages': there are pool, servers, policy, attention, model and gpu" bench pages
refused 2 "kvkeep bench: field repeats: 4 is not odd" bench --repeats 4
refused 2 "kvkeep info: field --nope: not understood; see kvkeep info --help" info --nope
refused 2 "kvkeep info: field extra: an argument too many" info --json extra
for bad in x -1 1.5 100% 5%% % ""; do
    refused 2 "kvkeep replay: field --watermark: '$bad' is neither a number of pages nor a share from 0 to below 100 percent" \
        replay --watermark "$bad"
done
refused 2 "generated: field watermark: leaves nothing of 9 pages" replay --mode timed --pages 9 --watermark 9
refused 2 "kvkeep replay: field --curve: '1' is too small (2 .. 10000)" replay --curve=1
refused 2 "kvkeep replay: field --curve: does not go with --reclaim all" replay --curve --reclaim all --pages 9
refused 2 "kvkeep replay: field --pages: does not go with --curve, which chooses the sizes" replay --curve --pages 9
refused 2 "kvkeep replay: field --belady: does not go with --curve" replay --curve --belady
refused 2 "kvkeep replay: field --print: does not go with many pools" replay --curve --print
refused 2 "kvkeep replay: field --record: does not go with many pools" replay --curve --record out.jsonl
refused 2 "kvkeep replay: field --events: does not go with many pools" replay --curve --events out.jsonl
refused 2 "kvkeep replay: field --audit: does not go with many pools" replay --reclaim all --pages 9 --audit
refused 2 "kvkeep replay: field --reclaim: all needs --pages: in an unlimited pool nothing is given up" replay --reclaim all
refused 2 "generated: field curve: goes with mode prefix, flat or timed only" replay --mode lengths --curve
refused 2 "kvkeep replay: field --pages: does not go with --curve, which chooses the sizes" replay --mode timed --curve --pages 9
refused 2 "generated: field watermark: leaves nothing of ..." replay --mode timed --curve --watermark 3000
refused 2 "generated: field libcachesim: goes with mode prefix or flat only" replay --mode timed --curve --libcachesim out.csv
refused 2 "generated: field reclaim all: goes with mode prefix or flat only" replay --mode timed --pages 9 --reclaim all
refused 1 "kvkeep replay: field --pages: the longest prompt has ..." replay --pages 9 --reclaim all
refused 2 "kvkeep replay: field --preempt: 'kill' is neither recompute nor swap" replay --preempt kill
refused 2 "kvkeep replay: field --host-pages: '0' is too small (1 .. 2147483647)" replay --host-pages 0
refused 2 "kvkeep replay: field --chunk: '0' is too small (1 .. 2147483647)" replay --chunk 0

# ---- Input: every bad file, and neither a recording nor a plot of it

bad() { # LINE FILE [ARGUMENT...]
    local line=$1
    shift
    refused 2 "$line" replay --json --record out.jsonl --plot out.svg "$@"
    [[ -z $(find . -name 'out*') ]] || complain "leaves a file behind: $*"
    rm -f out*
}

formats="mooncake, azure, vidur, etalon, kv_cache_tester, qwen, servegen_offline, burstgpt, servegen"
header="TIMESTAMP,ContextTokens,GeneratedTokens"
good_row="2023-11-16 18:15:46.6805900,374,44"

bad "absent: cannot open: No such file or directory" absent
mkdir folder
bad "folder: is a directory" folder
: >empty
bad "empty: is empty" empty
printf '\n' >blank
bad "blank:1: is empty" blank
head -c 100000 /dev/zero >zeroes
bad "zeroes:1: holds a NUL byte" zeroes
printf '\xff\xfe\x00\x01' >binary
bad "binary:1: holds a NUL byte" binary
printf 'a,b,c\n1,2,3\n' >other.csv
bad "other.csv:1: begins like none of $formats" other.csv
bad "other.csv:1: field arrived_at: the header has 'a' in its place" --format vidur other.csv
bad "other.csv: field format: 'csv' is none of $formats" --format csv other.csv

printf '%s\r\n%s\r\n%s' "$header" "$good_row" "2023-11-16 18:1" >truncated.csv
bad "truncated.csv:3: field ContextTokens: missing: the row has 1 of 3 columns" truncated.csv
printf '%s\n2023-11-16 18:15:46.6805900,-374,44\n' "$header" >negative.csv
bad "negative.csv:2: field ContextTokens: '-374' is negative" negative.csv
printf '%s\n2023-11-16 18:15:46.6805900,374,9223372036854775808\n' "$header" >huge.csv
bad "huge.csv:2: field GeneratedTokens: '9223372036854775808' is too large" huge.csv
printf '%s\n2023-11-16 18:15:46.6805900,374,\xff\xfe\n' "$header" >utf8.csv
bad "utf8.csv:2: field GeneratedTokens: '\\xFF\\xFE' is not a whole number" utf8.csv
printf '%s\n%s\n%s\n' "$header" "$good_row" "$header" >twice.csv
bad "twice.csv:3: field TIMESTAMP: 'TIMESTAMP' is not YYYY-MM-DD hh:mm:ss.fffffff" twice.csv

printf '0,1,1,Gamma,1,1\n' >a-trace.csv
bad "a-dataset.json: cannot open: No such file or directory" a-trace.csv
refused 2 "-: must be named FILE-trace.csv, as lengths are in FILE-dataset.json beside it" replay - <a-trace.csv
mooncake_line 0 600 1 "1, 2" | head -c 50 >truncated.jsonl
bad "truncated.jsonl:1: field input_length: not JSON at column 50:..." truncated.jsonl
mooncake_line 0 600 1 "1, 9223372036854775808" >ids.jsonl
bad "ids.jsonl:1: field hash_ids: not JSON at column 93: too big integer near '9223372036854775808'" ids.jsonl
mooncake_line 0 600 1 "1" >few.jsonl
bad "few.jsonl:1: field hash_ids: has 1 ids where input_length 600 needs 2" few.jsonl
{ mooncake_line 5 1 1 1 && mooncake_line 4 1 1 1; } >back.jsonl
bad "back.jsonl:2: field timestamp: is earlier than the request before" back.jsonl
{ printf '{"hash_ids": ' && head -c 100000 /dev/zero | tr '\0' '['; } >deep.jsonl
bad "deep.jsonl:1: field hash_ids: not JSON at column..." deep.jsonl
head -c 20000000 /dev/zero | tr '\0' '{' >long.jsonl
bad "long.jsonl:1: longer than 16777216 bytes" long.jsonl
printf '{"kvkeep_oplog": 1}\n' >log.jsonl
bad "log.jsonl:1: field plot: means nothing for an op log" log.jsonl
printf '{"kvkeep_oplog": 1, "pages": 4}\n{"op": "fly"}\n' >log.jsonl
refused 2 "log.jsonl:2: field op: ..." replay log.jsonl
mooncake_line 0 600 1 "1, 2" >blocks.jsonl
bad "blocks.jsonl: a page of 100 tokens is no part and no multiple of the trace's 512" --page-tokens 100 blocks.jsonl
printf '%s\n%s\n' "$header" "$good_row" >azure.csv
bad "azure.csv: azure traces name no content: use mode timed or lengths" --mode prefix azure.csv
bad "azure.csv:1: is azure and cannot follow mooncake" blocks.jsonl azure.csv
bad "azure.csv: a second trace: timed mode takes one" --mode timed azure.csv azure.csv
bad "azure.csv: azure traces do not say how requests follow each other" --mode multi-turn azure.csv
bad "azure.csv: field libcachesim: goes with mode prefix or flat only" --libcachesim out.csv azure.csv
bad "azure.csv: field events: goes with mode prefix or flat only" --events out.events azure.csv
bad "azure.csv: field belady: goes with mode prefix or flat only" --belady azure.csv
bad "blocks.jsonl: field belady: needs a pool of a size: in an unlimited one nothing is given up" --belady blocks.jsonl
printf '{"kvkeep_oplog": 1}\n' >log.jsonl
refused 2 "log.jsonl:1: field belady: means nothing for an op log" replay --belady log.jsonl
refused 2 "log.jsonl:1: field reclaim: means nothing for an op log" replay --reclaim lru log.jsonl
refused 2 "log.jsonl:1: field events: means nothing for an op log" replay --events out.jsonl log.jsonl
refused 2 "log.jsonl:1: field libcachesim: means nothing for an op log" replay --libcachesim out.csv log.jsonl
refused 2 "nowhere/out.csv: cannot write: No such file or directory" replay --libcachesim nowhere/out.csv blocks.jsonl
refused 2 "nowhere/out.jsonl: cannot write: No such file or directory" replay --record nowhere/out.jsonl blocks.jsonl

# ---- A name that would disturb a terminal

cp empty $'evil\e[31m\nname'
bad 'evil\x1B[31m\x0Aname: is empty' $'evil\e[31m\nname'

# ---- The job fails: exit 1

refused 1 "blocks.jsonl:1: needs more pages than the pool's 1: 1024 tokens more" replay --pages 1 blocks.jsonl

printf '%s\n%s\n' "$header" "2023-11-16 18:15:46.6805900,2000000000,44" >huge.csv
refused 1 "huge.csv:2: kvk_reserve: out of host memory" replay --page-tokens 1 --memory-limit 100 huge.csv
printf '{"kvkeep_oplog": 1, "page_tokens": 1, "pages": 2147483647}\n{"op": "open", "seq": 1}
{"op": "reserve", "seq": 1, "n_tokens": 2147483647}\n' >huge.jsonl
refused 1 "huge.jsonl:3: field result: reserve: expected success, got -2 KVK_ENOMEM (out of host memory)" replay --memory-limit 100 huge.jsonl

finish
