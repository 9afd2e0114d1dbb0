#!/bin/bash
# How long a live L2 zone takes to follow a failed link, beside what the model says.
#
#   bench/converge.sh [FAILURES] [SEED]       default: 50, 1; DILATION=4000
#
# Takes cell links down, one after the other and up again in between. Wall time from the request,
# stamped before netlink, to the last change of reachability in any switch, as that switch stamped
# it itself (events --json); what is shown is that minus what the simulator takes for the same
# failure. After each one the switches have to be where the planner says, or it isn't a fixed point.
# One JSON object; ends with 1 when the median is above 5 ms. Needs root and jq; DSFEMU is the program.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dsfemu=${DSFEMU:-$here/../dsfemu}
failures=${1:-50}
dilation=${DILATION:-4000}
RANDOM=${2:-1}
file=$here/../topologies/l2-zone.json
work=$(mktemp -d)
lab=conv$$
listener=
finish() {
	[ -z "$listener" ] || kill "$listener" 2>/dev/null || true
	"$dsfemu" down "$lab" --quiet || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

fixed() { # rows of the planner on stdin: is the lab there?
	"$dsfemu" show fabric reachability --lab "$lab" --json | jq -c '.[]' | cmp -s - "$1"
}

wait_for() {
	local end=$((SECONDS + 20))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "converge: still not: $*" >&2 && exit 1; }
		sleep 0.1
	done
}

"$dsfemu" up "$file" --name "$lab" --time-dilation "$dilation" --quiet >&2
"$dsfemu" events "$lab" --json >"$work/events" 2>"$work/events.err" &
listener=$!
wait_for grep -q listening "$work/events.err"
mapfile -t links < <("$dsfemu" expand "$file" --json | jq -r '.links[] | select(.kind != "gpu").a')
for ((i = 0; i < failures; i++)); do
	link=${links[RANDOM % ${#links[@]}]}
	"$dsfemu" sim "$file" --fail "$link" --json |
		jq -c --arg link "$link" '{link: $link, modelled_ns: .converged_ns}' >>"$work/modelled"
	"$dsfemu" plan "$file" --fail "$link" --json | jq -c '.reachability[]' >"$work/planned"
	"$dsfemu" link down "$link" --lab "$lab"
	sleep 0.5 # nobody asks the switches anything meanwhile
	wait_for fixed "$work/planned"
	"$dsfemu" link up "$link" --lab "$lab"
	wait_for "$dsfemu" status "$lab" --json >/dev/null
	sleep 0.3
done
kill "$listener"
wait "$listener" || true
listener=

# Each "asked down" with the changes up to the next request.
jq -sc --slurpfile modelled "$work/modelled" --argjson d "$dilation" '
	reduce .[] as $e ([];
		if $e.event == "asked" then . + [{down: $e.down, link: $e.link, asked: $e.wall_us, last: null}]
		elif $e.event == "reachability" and length > 0 then .[-1].last = ([.[-1].last, $e.wall_us] | max)
		else . end) |
	map(select(.down)) | [., $modelled] | transpose |
	map({link: .[1].link, wall_us: (.[0].last - .[0].asked), modelled_us: (.[1].modelled_ns * $d / 1000)} |
		.above_us = .wall_us - .modelled_us) |
	(map(.above_us) | sort) as $above | (map(.modelled_us) | sort) as $m |
	{row: "converge", failures: length, time_dilation: $d,
	modelled_us: {p50: $m[length / 2 | floor], max: $m[-1]},
	above_us: {p50: $above[length / 2 | floor], p90: $above[length * 0.9 | floor], max: $above[-1]},
	within_5_ms: ($above[length / 2 | floor] <= 5000)}' "$work/events" >"$work/result"
cat "$work/result"
jq -e --argjson n "$failures" '.failures == $n and .within_5_ms' "$work/result" >/dev/null
