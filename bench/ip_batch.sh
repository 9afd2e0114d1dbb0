#!/bin/bash
# The same namespaces and links by `ip netns add` and `ip -batch`: prints "UP_MS DOWN_MS".
# usage: ip_batch.sh EXPANDED.json
set -eu
prefix=ipb$$
names=$(jq -r '.nodes[].name' "$1")
trap 'for n in $names; do ip netns del "$prefix-$n" 2>/dev/null || true; done' EXIT
links=$(jq -r '.links[] | "\(.a) \(.b)"' "$1")

now_ms() { awk '{ printf "%.1f", $1 * 1000 }' /proc/uptime; }

start=$(now_ms)
for n in $names; do echo "netns add $prefix-$n"; done | ip -batch -
while read -r a b; do
	echo "link add name ${a#*:} netns $prefix-${a%:*} type veth peer name ${b#*:} netns $prefix-${b%:*}"
done <<<"$links" | ip -batch -
for n in $names; do
	awk -v n="$n" '{ for (i = 1; i <= 2; i++) { split($i, e, ":");
		if (e[1] == n) print "link set " e[2] " up" } }' <<<"$links" | ip -n "$prefix-$n" -batch -
done
up=$(now_ms)
for n in $names; do echo "netns del $prefix-$n"; done | ip -batch -
down=$(now_ms)
awk -v s="$start" -v u="$up" -v d="$down" 'BEGIN { printf "%.1f %.1f\n", u - s, d - u }'
