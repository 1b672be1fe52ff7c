#!/usr/bin/env bash
# docs/policies.md lists the policies, knobs and presets that `kvkeep info` lists, with the same numbers.
# shellcheck disable=SC1091,SC2154 # common.bash sets status, out and err
page=$(realpath "$(dirname "$0")/../../docs/policies.md")
source "$(dirname "$0")/common.bash"

succeeds info
table=$out
succeeds info --json

text='"text":"([^"]*)"'
number='(-?[0-9.e+-]+)'
is_knob="^\"name\":\"([a-z0-9_]+)\",\"min\":$number,\"max\":$number,\"default\":$number,\"whole\":(true|false),$text"
is_policy="^\"name\":\"([a-z0-9_]+)\",$text,\"knobs\":"
is_preset="^\"name\":\"([a-z0-9_-]+)\",\"choice\":\"([^\"]*)\""

# Each object of the JSON as the row of a table that it should be.
while read -r object; do
    if [[ $object =~ $is_policy ]]; then
        policy=${BASH_REMATCH[1]}
        grep -qF "**$policy** " "$page" || complain "policies.md says nothing of $policy"
        [[ $table == *"  $policy "*"${BASH_REMATCH[2]}"* ]] || complain "the table has no $policy"
    elif [[ $object =~ $is_knob ]]; then
        [[ ${BASH_REMATCH[5]} == true ]] && whole="whole, " || whole=""
        echo "| \`$policy\` | \`${BASH_REMATCH[1]}\` | $whole${BASH_REMATCH[2]} to ${BASH_REMATCH[3]} | ${BASH_REMATCH[4]} | ${BASH_REMATCH[6]} |" >>listed
    elif [[ $object =~ $is_preset ]]; then
        echo "| \`${BASH_REMATCH[1]}\` | \`${BASH_REMATCH[2]}\` |" >>listed
    fi
done < <(sed 's/.*"policies"://; s/{/\n/g' <<<"$out")

grep -E '^\| `' "$page" >written || true
diff written listed >differences || complain "docs/policies.md (<) differs from kvkeep info (>): $(<differences)"
[[ $(wc -l <listed) -gt 30 ]] || complain "kvkeep info lists only $(wc -l <listed) knobs and presets"

finish
