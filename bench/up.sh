#!/bin/bash
# `up` (until ready) and `down` beside the kernel's floor, ip -batch and Mininet, in turn, medians.
#
#   bench/up.sh [NODES ...]        default: 50 100 200 400; RUNS=3 of each, MININET_MAX=400
#
# Needs root, jq, Mininet. DSFEMU and FLOOR name the programs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dsfemu=${DSFEMU:-$here/../dsfemu}
floor=${FLOOR:-$here/../bench/floor}
runs=${RUNS:-3}
work=$(mktemp -d)
lab=bench$$
trap '"$dsfemu" down "$lab" --quiet 2>/dev/null || true; rm -rf "$work"' EXIT

# 4 nodes a scaling unit: 2 RDSWs, 2 hosts; 4 FDSWs for all: 12 links a unit.
topology() { # units
	jq -n --argjson u "$1" '{ name: "bench", planes: 1, buildings: [ { name: "b0", zones: [
		{ name: "z0", scaling_units: $u, rails: 2, hosts_per_unit: 2, fdsw: 4 } ] } ] }'
}

median() { # column of the lines on stdin
	awk -v c="$1" '{ print $c }' | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

now_ms() { date +%s%3N; }

ours() { # file
	local start up down
	start=$(now_ms)
	"$dsfemu" up "$1" --name "$lab" --quiet >/dev/null
	up=$(now_ms)
	"$dsfemu" down "$lab" --quiet
	down=$(now_ms)
	echo "$((up - start)) $((down - up))"
}

printf '%6s %6s  %22s  %22s  %22s  %22s  %22s\n' nodes links 'dsfemu up/down ms' 'floor' \
	'floor + fork' 'ip -batch' 'Mininet'
[ $# -gt 0 ] || set -- 50 100 200 400
for nodes in "$@"; do
	topology $(((nodes - 4) / 4)) >"$work/short.json"
	"$dsfemu" expand "$work/short.json" >"$work/lab.json"
	for ((i = 0; i < runs; i++)); do
		ours "$work/lab.json" >>"$work/ours"
		"$floor" "$work/lab.json" >>"$work/floor"
		"$floor" -f "$work/lab.json" >>"$work/fork"
		"$here/ip_batch.sh" "$work/lab.json" >>"$work/ip"
		if ((nodes <= ${MININET_MAX:-400})); then
			/usr/bin/python3 "$here/mininet_up.py" "$work/lab.json" >>"$work/mininet"
		fi
	done
	printf '%6s %6s' "$(jq '.nodes | length' "$work/lab.json")" "$(jq '.links | length' "$work/lab.json")"
	for what in ours floor fork ip mininet; do
		[ -s "$work/$what" ] || { printf '  %22s' -; continue; }
		printf '  %22s' "$(median 1 <"$work/$what") / $(median 2 <"$work/$what")"
	done
	printf '\n'
	rm -f "$work"/{ours,floor,fork,ip,mininet}
done
