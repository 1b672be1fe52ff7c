#!/usr/bin/env bash
# Input from files, pipes and several files at once; output files that appear whole or not at all.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
source "$(dirname "$0")/common.bash"

{ mooncake_line 0 1300 3 "1, 2, 3" && mooncake_line 10 1300 2 "1, 2, 3"; } >blocks.jsonl
header="TIMESTAMP,ContextTokens,GeneratedTokens"
row="2023-11-16 18:15:46.6805900,374,44"

hits() { # ARGUMENT...
    succeeds replay --json "$@"
    value_of page_hits "$out"
}

# ---- Input

[[ $(hits blocks.jsonl) == 3 ]] || complain "a file"
[[ $(hits - <blocks.jsonl) == 3 ]] || complain "the standard input"
[[ $(hits <(cat blocks.jsonl)) == 3 ]] || complain "a pipe"
[[ $(hits blocks.jsonl blocks.jsonl) == 9 ]] || complain "two files as one stream"
[[ $(hits blocks.jsonl --pages 50 blocks.jsonl --requests 3) == 6 ]] || complain "options behind traces"
[[ $(hits --requests 3 blocks.jsonl blocks.jsonl) == 6 ]] || complain "a part of the second file"
[[ $(hits --format mooncake blocks.jsonl) == 3 ]] || complain "a forced format"
sed 's/$/\r/' blocks.jsonl >crlf.jsonl
[[ $(hits crlf.jsonl) == 3 ]] || complain "lines that end with CR LF"
head -c -1 blocks.jsonl >open.jsonl
[[ $(hits open.jsonl) == 3 ]] || complain "no newline at the end"
printf '%s\r\n%s\r\n%s' "$header" "$row" "$row" >azure.csv
succeeds replay --json azure.csv
[[ $(value_of requests "$out") == 2 ]] || complain "CR LF without a last newline"

# ---- Op logs: recorded, replayed from a file and from a pipe, recorded again

succeeds replay --record log.jsonl blocks.jsonl
[[ $(head -n 1 log.jsonl) == *'"kvkeep_oplog"'* ]] || complain "the recording is no op log"
succeeds replay log.jsonl
succeeds replay - <log.jsonl
succeeds replay <(cat log.jsonl)
succeeds replay --json --audit --record again.jsonl log.jsonl
is_json_object "$out" || complain "is no JSON object: $out"
cmp log.jsonl again.jsonl || complain "a recording of a replayed recording differs"
succeeds replay --print log.jsonl
[[ $(wc -l <<<"$out") -eq $(($(wc -l <log.jsonl) - 1)) ]] || complain "--print gives not one line per call"
sed 's/"result":3/"result":4/' log.jsonl >wrong.jsonl
run replay wrong.jsonl
[[ $status -eq 1 && $(wc -l <.err) -eq 1 && $err == wrong.jsonl:*result* ]] || complain "an unmet expectation: $err"

# ---- Output files

succeeds replay --record /dev/stdout --print blocks.jsonl
[[ $out == *kvkeep_oplog* ]] || complain "nothing on /dev/stdout"
echo old >kept.jsonl
refused 2 "azure.csv: azure traces name no content: use mode timed or lengths" replay --mode prefix --record kept.jsonl azure.csv
[[ $(cat kept.jsonl) == old ]] || complain "a failed run changed the file"
ln -s kept.jsonl link.jsonl
succeeds replay --record link.jsonl blocks.jsonl
[[ -L link.jsonl ]] || complain "the link was replaced"
cmp -s kept.jsonl log.jsonl || complain "the link's target has not the recording"
(umask 027 && "$KVKEEP" replay --record mode.jsonl blocks.jsonl >/dev/null)
[[ $(stat -c %a mode.jsonl) == 640 ]] || complain "mode $(stat -c %a mode.jsonl) instead of 640"
refused 1 "/dev/full: cannot write: No space left on device" replay --json --requests 50 --record /dev/full

{ mooncake_line 2500 1300 3 "1, 2, 3" && mooncake_line 3999 600 2 "1, 9"; } >late.jsonl
succeeds replay --json --libcachesim pages.csv late.jsonl
[[ $(tr '\n' ' ' <pages.csv) == "2,1,1 2,2,1 2,3,1 3,1,1 3,4,1 " ]] || complain "pages for libCacheSim: $(cat pages.csv)"
refused 1 "/dev/full: cannot write: No space left on device" replay --json --libcachesim /dev/full blocks.jsonl

# ---- Events

{ mooncake_line 0 1300 3 "1, 2, 3" && mooncake_line 10 1300 2 "1, 2, 4"; } >fork.jsonl
succeeds replay --pages 3 --events events.jsonl fork.jsonl
kinds_and_keys=$(sed -E 's/.*"kind":"([a-z]*)".*"page_key":"0*([0-9a-f]*)".*/\1 \2/' events.jsonl | tr '\n' ' ')
[[ $kinds_and_keys == "stored 1 stored 2 stored 3 removed 3 stored 4 " ]] || complain "events: $kinds_and_keys"
event='^\{"kind":"stored","key":"[0-9a-f]{32}","parent":"[0-9a-f]{32}","page_tokens":512,"group":0,"adapter":0,"page":[0-9]+,"page_key":"[0-9a-f]{32}"\}$'
[[ $(head -n 1 events.jsonl) =~ $event ]] || complain "an event: $(head -n 1 events.jsonl)"
# No content is stored twice, and none is removed that was not stored.
succeeds replay --pages 700 --events events.jsonl
awk -F '"' '{ there[$8] += $4 == "stored" ? 1 : -1; if (there[$8] < 0 || there[$8] > 1) exit 1 }' events.jsonl ||
    complain "events of contents that are there twice or never were"
[[ $(head -n 1 events.jsonl) == *'"tokens":['*']}' ]] || complain "an event without tokens"
refused 1 "/dev/full: cannot write: No space left on device" replay --json --events /dev/full

# Stopped in the middle, by a user or by the system: nothing is left.
mkdir killed
mkfifo endless
exec 3<>endless
cat blocks.jsonl >&3
for signal in INT TERM KILL; do
    env --default-signal=INT "$KVKEEP" replay --record killed/out.jsonl --plot killed/out.svg endless >/dev/null 2>&1 3>&- &
    job=$!
    sleep 0.3
    kill -$signal $job
    wait $job 2>/dev/null && complain "SIG$signal did not end the run"
    [[ -z $(ls -A killed) ]] || complain "SIG$signal leaves $(ls -A killed)"
done
exec 3>&-

# ---- Standard output that cannot be written

for arguments in "--version" "--help" "info" "replay --help" "replay --json blocks.jsonl" "replay --print blocks.jsonl"; do
    status=0
    # shellcheck disable=SC2086
    "$KVKEEP" $arguments >/dev/full 2>.err || status=$?
    [[ $status -eq 1 && $(wc -l <.err) -eq 1 ]] || complain "exit $status with a full stdout: kvkeep $arguments: $(cat .err)"
done
status=0
"$KVKEEP" replay --json --record full.jsonl blocks.jsonl >/dev/full 2>.err || status=$?
[[ $status -eq 1 && ! -e full.jsonl ]] || complain "a run with a full stdout leaves its recording"

# ---- Names

refused 2 "same: is to hold two outputs" replay --requests 10 --record same --plot same
refused 2 ": cannot write: No such file or directory" replay --requests 10 --record ""
umask 022
: >private.jsonl && chmod 600 private.jsonl
succeeds replay --requests 10 --json --record private.jsonl
[[ $(stat -c %a private.jsonl) == 600 ]] || complain "a private recording became $(stat -c %a private.jsonl)"
{ printf '\n\n' && cat blocks.jsonl; } >blank.jsonl
succeeds replay --json blank.jsonl
{ printf '\n' && cat private.jsonl; } >blank.jsonl
succeeds replay --json blank.jsonl

# ---- Plots

if command -v gnuplot >/dev/null; then
    for mode in prefix timed lengths; do
        succeeds replay --mode $mode --requests 200 --json --plot $mode.svg
        is_json_object "$out" || complain "--plot disturbs the JSON: $out"
        [[ $(head -c 200 $mode.svg) == *"<?xml"* && $(tail -n 2 $mode.svg) == *"</svg>"* ]] || complain "$mode.svg is no SVG"
    done
    for many in "--curve" "--reclaim all --pages 1000" "--mode flat --curve" "--mode timed --curve"; do
        # shellcheck disable=SC2086
        succeeds replay $many --requests 200 --plot many.svg
        [[ $(tail -n 2 many.svg) == *"</svg>"* ]] || complain "$many: no SVG"
    done
fi
refused 1 "plot: cannot write: No space left on device" replay --requests 10 --json --plot /dev/full
status=0
PATH=/nonexistent "$KVKEEP" replay --requests 10 --json --plot none.svg >.out 2>.err || status=$?
[[ $status -eq 1 && $(cat .err) == "gnuplot: not found; it draws what --plot asks for" ]] || complain "no gnuplot: $(cat .err)"
[[ ! -e none.svg ]] || complain "a plot without gnuplot"
[[ -z $(find . -name '*.part') ]] || complain "parts of files are left"

finish
