#!/usr/bin/env bats
# An L2 zone, live: what the planner computes is what its switches come to, whatever fails, and
# traffic across zones goes on meanwhile. One lab for all of it.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	export L2=$SOURCE/topologies/l2-zone.json
	LAB=$(lab_name l2)
	export LAB DSFEMU_LAB=$LAB
	dsf up "$L2" --name "$LAB" --time-dilation 8000 --quiet
	dsf sim "$L2" --show 'fabric reachability' --json | jq -c '.[]' >"$BATS_FILE_TMPDIR/healthy"
	wait_until 20 live_is "$BATS_FILE_TMPDIR/healthy"
}

teardown_file()
{
	[ "$(id -u)" = 0 ] || return 0
	"$DSFEMU" down "$LAB" --kill --quiet
}

setup()
{
	need_root
	healthy=$BATS_FILE_TMPDIR/healthy
	cd "$BATS_TEST_TMPDIR"
}

# Whatever a test has left is taken back.
teardown()
{
	[ "$(id -u)" = 0 ] || return 0
	[ -z "${background:-}" ] || kill "$background" || true
	[ "$BATS_TEST_COMPLETED" != 1 ] || return 0
	dsf status --json | jq -r '.nodes[] | select(.pid == null).name' |
		xargs -rn1 "$DSFEMU" node start || true
	dsf status --json | jq -r '.links[] | select(.state != "up" or has("impairment")).a' |
		xargs -rn1 "$DSFEMU" link reset || true
}

reachability()
{
	jq -c '.reachability[]'
}

# planned LINK...: rows of reachability with these links down
planned()
{
	"$DSFEMU" plan "$L2" --fail "$@" --json | reachability
}

live_is()
{
	dsf show fabric reachability --json | jq -c '.[]' | diff -q "$1" - >/dev/null
}

# links_of NODE KIND?: its links, as the planner names them
links_of()
{
	jq -r --arg n "$1:" --arg k "${2:-}" '.links[] | select((.a | startswith($n)) or (.b | startswith($n))) |
		select($k == "" or .kind == $k).a' "/run/dsfemu/$LAB/lab.json"
}

# without NODE: rows of the others; what a dead node thinks nobody knows
without()
{
	jq -c --arg n "$1" 'select(.node != $n)'
}

ping_across()
{
	dsf exec b0-z0-h0 -- ping -q -c "${1:-20}" -i 0.02 -W 5 "$(address "$LAB" b0-z2-h3 gpu1p0)"
}

# Segments that the leaves' kernels sent again: of what FSDB's sessions lost each is.
sent_again()
{
	local leaf

	for leaf in $(jq -r '.nodes[] | select(.role == "rdsw").name' "/run/dsfemu/$LAB/lab.json"); do
		ip netns exec "$LAB-$leaf" awk '/^Tcp: [0-9]/ { print $13 }' /proc/net/snmp
	done | jq -s add
}

# As much has been counted since "before" as the run and the sessions beside it lost; cells are
# missed after their time only.
counted()
{
	local after sum=0 i lost again
	mapfile -t after < <(total reassembly_errors voq_drops watchdog_drops egress_drops nic_drops)
	for i in "${!after[@]}"; do
		sum=$((sum + after[i] - before[i]))
	done
	lost=$(jq .lost run.json)
	again=$(($(sent_again) - again_before))
	echo "lost $lost, sent again $again, counted $sum: ${before[*]} -> ${after[*]}" >counted
	[ "$sum" -ge "$lost" ] && [ "$sum" -le $((lost + again)) ]
}

# total COUNTER...: sums over all nodes, a line each
total()
{
	local json counter
	json=$(dsf show counters --json)
	for counter; do
		jq --arg c "$counter" 'map(.[$c]) | add' <<<"$json"
	done
}

@test "healthy: pings and writes across zones" {
	ping_across
	dsf run write --scope cross-zone --size 64K --iterations 2 --json >run.json
	jq -e '.verified and .lost == 0 and .duplicated == 0 and .bytes_spine == .bytes' run.json
}

@test "links at both tiers: live is what the planner computes, withheld links too" {
	local failed=()
	for link in b0-z1-p0-rdsw2:fab1 b0-z1-p0-fdsw2:fab5 b0-z3-p0-fdsw0:fab6 b0-z1-p0-fdsw3:fab4; do
		failed+=("$link")
		dsf link down "$link"
		planned "${failed[@]}" >planned
		wait_until 10 live_is planned
	done
	jq -es 'map(select(.withdrawn != [])) | length > 50' planned # the failures do withhold
	for link in "${failed[@]}"; do
		dsf link up "$link"
	done
	wait_until 10 live_is "$healthy"
	dsf status >/dev/null
}

@test "events name the switches whose reachability changes, and no others" {
	"$DSFEMU" events --json >events.json 2>events.err 3>&- &
	background=$!
	wait_until 5 grep -q listening events.err
	dsf link down b0-z1-p0-fdsw2:fab5
	planned b0-z1-p0-fdsw2:fab5 >planned
	wait_until 10 live_is planned
	for file in planned "$healthy"; do
		jq -c '[.node, .destination, .output]' "$file" >"${file##*/}.output"
	done
	diff planned.output healthy.output | sed -n 's/^< //p' | jq -r '.[0]' | sort -u >want
	[ -s want ]
	wait_until 5 sh -c "jq -r 'select(.event == \"reachability\").node' events.json | sort -u | diff - want"
	dsf link up b0-z1-p0-fdsw2:fab5
	wait_until 10 live_is "$healthy"
}

@test "failures at both tiers under load: every byte arrives" {
	local links=(b0-z0-p0-rdsw1:fab2 b0-z2-p0-fdsw1:fab7) failures=0
	dsf run write --scope cross-zone --size 256K --iterations 100 --json >run.json 3>&- &
	background=$!
	dsf link impair b0-z3-p0-fdsw0:fab4 --loss 5% --for 1sw
	while kill -0 "$background" 2>/dev/null; do # as long as it lasts
		sleep 0.3
		dsf link down "${links[failures % 2]}"
		sleep 0.3
		dsf link up "${links[failures % 2]}"
		failures=$((failures + 1))
	done
	[ "$failures" -ge 2 ]
	wait "$background"
	background=
	jq -e '.verified and .lost == 0 and .duplicated == 0' run.json
	wait_until 20 live_is "$healthy"
}

@test "what a failure costs is counted once, where its cells are missed" {
	mapfile -t before < <(total reassembly_errors voq_drops watchdog_drops egress_drops nic_drops)
	again_before=$(sent_again)
	dsf run udp --scope cross-zone --size 4000 --rate 2G --duration 2sw --json >run.json 3>&- &
	background=$!
	sleep 1
	for link in b0-z0-p0-rdsw0:fab0 b0-z0-p0-rdsw0:fab1; do
		dsf link down "$link"
		sleep 0.2
	done
	wait "$background"
	background=
	jq -e '.messages > 100 and .duplicated == 0' run.json
	wait_until 10 counted || { cat counted && false; }
	dsf link up b0-z0-p0-rdsw0:fab0
	dsf link up b0-z0-p0-rdsw0:fab1
	wait_until 10 live_is "$healthy"
}

@test "a link and an FDSW are drained under load: nothing is lost, and they come back" {
	dsf run udp --scope cross-zone --size 4000 --rate 2G --duration 2sw --json >run.json 3>&- &
	background=$!
	sleep 1
	dsf link drain b0-z0-p0-rdsw0:fab0
	dsf node drain b0-z2-p0-fdsw1
	unused() # by RDSW 0: its first link
	{
		dsf show fabric reachability --node b0-z0-p0-rdsw0 --json |
			jq -e 'length > 1 and all(.[]; .output | index("fab0") | not)'
	}
	wait_until 10 unused
	wait "$background"
	background=
	jq -e '.messages > 100 and .lost == 0 and .duplicated == 0' run.json
	dsf link undrain b0-z0-p0-rdsw0:fab0
	dsf node undrain b0-z2-p0-fdsw1
	wait_until 10 live_is "$healthy"
	dsf status >/dev/null
}

@test "an RDSW that other zones send to is drained: what is under way in the spine arrives" {
	# Not reassembly errors: on a machine that is too slow cells come after their time.
	local lost=(cells_lost fabric_unreachable_dropped fabric_link_down_dropped fabric_drops)
	local before_drains
	before_drains=$(total "${lost[@]}")
	mapfile -t before < <(total reassembly_errors voq_drops watchdog_drops egress_drops nic_drops)
	again_before=$(sent_again)
	dsf run udp --scope cross-zone --size 4000 --rate 20G --duration 3sw --json >run.json 3>&- &
	background=$!
	sleep 1
	unreached()
	{
		dsf show fabric reachability b0-z0-p0-rdsw0 --json |
			jq -e 'length > 30 and all(.[] | select(.node != "b0-z0-p0-rdsw0");
				.output == [] and (.cut_by_balance | not))'
	}
	for _ in 1 2 3; do
		dsf node drain b0-z0-p0-rdsw0
		sleep 0.1
		dsf node undrain b0-z0-p0-rdsw0
		sleep 0.1
	done
	dsf node drain b0-z0-p0-rdsw0
	wait_until 10 unreached
	dsf node undrain b0-z0-p0-rdsw0
	wait "$background"
	background=
	jq -e '.messages > 100 and .duplicated == 0' run.json
	wait_until 10 counted || { cat counted && false; }
	echo "$before_drains" | diff - <(total "${lost[@]}")
	wait_until 10 live_is "$healthy"
}

@test "an FDSW and an SDSW die and come back: the others follow, traffic goes on" {
	for node in b0-z2-p0-fdsw1 b0-p0-sdsw2; do
		# shellcheck disable=SC2046
		planned $(links_of $node) | without $node >planned
		dsf node kill $node
		wait_until 10 live_is planned
		ping_across 5
		dsf run write --scope cross-zone --size 16K --json | jq -e .verified
		dsf node start $node
		wait_until 10 live_is "$healthy"
	done
}

@test "loss of 0 % changes no counter, of 100 % lets nothing pass; cleared it is as before" {
	local link=b0-z1-p0-rdsw0:eth0 to
	to=$(address "$LAB" b0-z1-h0 gpu0p0)
	ping_one() { dsf exec b0-z0-h0 -- ping -q -c 5 -i 0.02 -W 2 "$to"; }
	wait_until 10 ping_one
	before=$(total impaired_drops corrupt_drops reassembly_errors)
	dsf link impair $link --loss 0% --corrupt 0%
	ping_one
	[ "$(total impaired_drops corrupt_drops reassembly_errors)" = "$before" ]
	dsf link impair $link --loss 100%
	run ping_one
	[[ "$output" == *" 0 received"* ]]
	[ "$(total impaired_drops)" -gt "$(head -n 1 <<<"$before")" ]
	dsf link reset $link
	ping_one
}

@test "random downs and ups, by either end: listing, kernel and reachability agree after each" {
	"$SOURCE/scripts/link-truth" --lab "$LAB" --count 20 --seed 7
	wait_until 10 live_is "$healthy"
}

@test "a random drill holds" {
	run --separate-stderr dsf chaos --random --seed 5 --duration 300us --faults 4 --json
	echo "$output"
	echo "$output" | jq -e '.verdict != "broken" and (.faults | length) == 4' >/dev/null
	wait_until 20 live_is "$healthy"
}
