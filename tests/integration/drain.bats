#!/usr/bin/env bats
# Drains of links and switches on a live lab; cables against the plan; loops; minimum links.

bats_require_minimum_version 1.5.0
load lib.bash

P0=b0-z0-p0

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	LAB=$(lab_name dr)
	export LAB DSFEMU_LAB=$LAB
	dsf up "$MINI" --name "$LAB"
}

teardown_file()
{
	[ "$(id -u)" = 0 ] || return 0
	"$DSFEMU" down "$LAB" --kill
}

setup()
{
	need_root
	export DSFEMU_LAB=$LAB
	other='' listener=''
}

teardown()
{
	[ "$(id -u)" = 0 ] || return 0
	[ -z "$listener" ] || kill "$listener"
	[ -z "$other" ] || "$DSFEMU" down "$other" --kill
	export DSFEMU_LAB=$LAB
	for link in $P0-rdsw0:fab0 $P0-rdsw0:fab1; do
		dsf link reset $link
	done
	for node in rdsw0 fdsw0; do
		dsf node undrain $P0-$node
	done
	wait_until 20 whole
}

whole()
{
	dsf status --json | jq -e '.state == "ready" and all(.links[]; .state == "up")'
}

port() # NODE IF FILTER
{
	dsf show port --node "$1" --json |
		jq -e --arg port "$2" ".[] | select(.port == \$port) | $3"
}

# Both ends of RDSW 0's first link.
both()
{
	port $P0-rdsw0 fab0 "$1" && port $P0-fdsw0 fab0 "$2"
}

outputs() # NODE DESTINATION WANT : its links to there
{
	[ "$(dsf show fabric reachability "$2" --node "$1" --json | jq -c '.[0].output')" = "$3" ]
}

sum() # COUNTER, over all switches
{
	dsf show counters --json | jq "[.[].$1] | add"
}

lost()
{
	echo "$(sum reassembly_errors) $(sum cells_lost) $(sum fabric_unreachable_dropped)" \
		"$(sum fabric_link_down_dropped) $(sum fabric_drops) $(sum voq_drops) $(sum watchdog_drops)"
}

told() # WANT : what FDSW 0 was asked to be
{
	jq -es --arg n $P0-fdsw0 --argjson want "$1" \
		'map(select(.node == $n).event | select(endswith("drained") and (contains("_") | not))) == $want' \
		"$BATS_TEST_TMPDIR/events"
}

cells_of() # PORT of RDSW 0
{
	port $P0-rdsw0 "$1" '[.cells_tx, .cells_rx] | @csv'
}

pings() # FROM TO COUNT, over plane 0
{
	dsf exec "$1" -- ping -6 -q -c "$3" -i 0.01 -W 2 "$(address "$LAB" "$2" gpu0p0)" -I gpu0p0
}

@test "a drained link is up and inactive at both ends; either end undrains it" {
	dsf link drain $P0-rdsw0:fab0
	wait_until 10 both '.live and .carrier and .active_state == "inactive" and .drained and (.peer_drained | not)' \
		'.live and .carrier and .active_state == "inactive" and (.drained | not) and .peer_drained'
	dsf status --json | jq -e --arg a $P0-rdsw0:fab0 '.state == "ready" and
		[.links[] | select(.state != "up") | [.a, .state]] == [[$a, "drained"]]'
	wait_until 10 outputs $P0-rdsw0 $P0-rdsw3 '["fab1"]'
	wait_until 10 outputs $P0-rdsw3 $P0-rdsw0 '["fab1"]'
	outputs $P0-rdsw3 $P0-rdsw1 '["fab0","fab1"]'
	dsf show fabric topology --json |
		jq -e --arg a $P0-rdsw0:fab0 '.[] | select(.a == $a) | .state == "drained"'
	why=$(dsf explain $P0-rdsw0:fab0 $P0-rdsw3) # the other end would tell, this one is drained
	[[ $why == "$P0-fdsw0:fab0 to $P0-rdsw0: drained at $P0-rdsw0:fab0"*"caused by $P0-rdsw0:fab0" ]]
	dsf link undrain $P0-fdsw0:fab0
	wait_until 10 both '.active_state == "active"' '.active_state == "active"'
	wait_until 10 outputs $P0-rdsw0 $P0-rdsw3 '["fab0","fab1"]'
}

@test "drains under load lose nothing, and the drained link carries no data" {
	local before cells other_cells load

	before=$(lost)
	dsf run permutation --size 12M --json >"$BATS_TEST_TMPDIR/run.json" 3>&- &
	load=$!
	for _ in 1 2 3; do
		for link in $P0-rdsw0:fab0 $P0-fdsw1:fab2 $P0-rdsw1:fab1; do
			dsf link drain $link
			sleep 0.2
			dsf link undrain $link
			sleep 0.05
		done
		dsf node drain $P0-fdsw0
		sleep 0.2
		dsf node undrain $P0-fdsw0
		sleep 0.05
	done
	dsf link drain $P0-rdsw0:fab0
	wait_until 10 both '.active_state == "inactive"' '.active_state == "inactive"'
	wait $load
	jq -e '.verified and .lost == 0' "$BATS_TEST_TMPDIR/run.json"
	cells=$(cells_of fab0) other_cells=$(cells_of fab1)
	dsf run permutation --size 256K
	[ "$(cells_of fab0)" = "$cells" ]
	[ "$(cells_of fab1)" != "$other_cells" ]
	[ "$(lost)" = "$before" ]
}

@test "a drained switch: its ports inactive, its links up, a flap and a restart change nothing" {
	dsf node drain $P0-fdsw0
	inactive()
	{
		dsf show port --node $P0-fdsw0 --json | jq -e 'all(.[]; .active_state == "inactive" and
			.live and .carrier and .drained and .switch_state == "drained" and .cabling == "ok")'
	}
	wait_until 10 inactive
	dsf status --json | jq -e --arg n $P0-fdsw0 '.state == "ready" and
		[.nodes[] | select(.drained) | .name] == [$n] and
		([.links[] | select(.state == "drained")] | length) == 4'
	dsf link down $P0-rdsw1:fab0
	wait_until 10 port $P0-fdsw0 fab1 '.carrier | not'
	dsf link up $P0-rdsw1:fab0
	wait_until 10 inactive
	dsf node restart $P0-fdsw0
	wait_until 10 inactive
	dsf node restart $P0-rdsw1
	wait_until 10 port $P0-rdsw1 fab0 '.live and .peer_drained and .active_state == "inactive"'
	dsf node undrain $P0-fdsw0
	wait_until 20 whole
}

@test "drains that leave a switch no way are told, though it is ready" {
	dsf node drain $P0-fdsw0
	dsf link drain $P0-rdsw0:fab1
	run dsf status --json
	[ "$status" -eq 1 ]
	jq -e --arg n $P0-rdsw0 '.state == "degraded" and all(.links[]; .state != "down") and
		[.nodes[] | select(.cut_off) | [.name, .state]] == [[$n, "ready"]]' <<<"$output"
	[[ $(dsf status) == *"$P0-rdsw0 "*"ready, all its links are drained"* ]]
	dsf link undrain $P0-rdsw0:fab1
	dsf status --json | jq -e '.state == "ready" and all(.nodes[]; .cut_off | not)'
	dsf node undrain $P0-fdsw0
	wait_until 20 whole
}

@test "a drained RDSW forwards between its own ports and not through the fabric" {
	pings b0-z0-h0 b0-z0-h2 3
	dsf node drain $P0-rdsw0
	wait_until 10 outputs $P0-rdsw3 $P0-rdsw0 '[]'
	pings b0-z0-h0 b0-z0-h1 20
	run ! pings b0-z0-h0 b0-z0-h2 3
	dsf node undrain $P0-rdsw0
	wait_until 10 outputs $P0-rdsw3 $P0-rdsw0 '["fab0","fab1"]'
	wait_until 10 pings b0-z0-h0 b0-z0-h2 3
}

@test "--for undrains by itself; what can't be drained says so" {
	"$DSFEMU" events --json >"$BATS_TEST_TMPDIR/events" 2>"$BATS_TEST_TMPDIR/errors" 3>&- &
	listener=$!
	wait_until 10 grep -q listening "$BATS_TEST_TMPDIR/errors"
	dsf link drain $P0-rdsw0:fab0 --for 3sw
	dsf node drain $P0-fdsw0 --for 3sw
	dsf status --json | jq -e '[.links[] | select(.state == "drained")] | length == 4'
	wait_until 20 whole
	wait_until 10 told '["drained", "undrained"]'
	run --separate-stderr dsf link drain b0-z0-h0:gpu0p0
	[ "$status" -eq 2 ]
	[[ $stderr == *"only links that carry cells"* ]]
	run --separate-stderr dsf node drain b0-z0-h0
	[ "$status" -eq 2 ]
	[[ $stderr == *"only switches of a cell fabric"* ]]
	run dsf link undrain $P0-rdsw0:fab0 --for 1s
	[ "$status" -eq 2 ]
	dsf link drain $P0-rdsw0:fab0
	dsf link reset $P0-fdsw0:fab0
	wait_until 20 whole
}

@test "a gray link is called isolated" {
	dsf link impair $P0-rdsw0:fab0 --loss 20%
	dsf run permutation --size 1M # so that there are cells to lose
	isolated()
	{
		dsf status --json | jq -e --arg a $P0-rdsw0:fab0 '.links[] | select(.a == $a) |
			.state == "down" and (.why | startswith("isolated"))'
	}
	wait_until 10 isolated
	[[ $(dsf explain $P0-rdsw0:fab0 $P0-rdsw3) == *isolated* ]]
}

@test "a drill of drains holds" {
	dsf chaos "$SOURCE/drills/port-drain.json" --json >"$BATS_TEST_TMPDIR/drill.json" || true
	jq -e '.verdict != "broken"' "$BATS_TEST_TMPDIR/drill.json"
}

@test "wrong cables are told and carry data; a loop is disabled until it is drained" {
	other=${LAB}m
	dsf up "$SOURCE/tests/topologies/miscabled.json" --name "$other"
	export DSFEMU_LAB=$other
	dsf show fabric topology --json | jq -e '[.[] | select(.match == false) | .a] ==
		["rdsw0:fab0", "rdsw1:fab0", "rdsw0:fab1", "fdsw1:fab2"]'
	dsf show fabric topology --json | jq -e '.[] | select(.a == "rdsw0:fab0") |
		[.a_expected, .a_actual, .b_expected, .b_actual] ==
		["fdsw0:fab0", "fdsw0:fab1", "rdsw1:fab0", "rdsw0:fab0"]'
	dsf show counters --json | jq -e '[.[] | select(.node == "fdsw0") |
		.cabling_missing, .cabling_mismatch, .cabling_bogus] == [0, 2, 0]'
	dsf run permutation --size 256K --json | jq -e .verified
	for i in fab2 fab3; do
		wait_until 10 port fdsw1 $i '.admin_state == "disabled" and .error == "loop detected"'
	done
	dsf node drain fdsw1
	wait_until 10 port fdsw1 fab2 '.admin_state == "enabled" and .live and .active_state == "inactive"'
	dsf node undrain fdsw1
	wait_until 10 port fdsw1 fab2 '.admin_state == "disabled"'
}

@test "below its minimum links an RDSW drains itself, with enough it is back" {
	other=${LAB}k
	jq '.fabric.min_links_to_remain = 2' "$MINI" >"$BATS_TEST_TMPDIR/minimum.json"
	dsf up "$BATS_TEST_TMPDIR/minimum.json" --name "$other"
	export DSFEMU_LAB=$other
	state()
	{
		dsf show fabric --node $P0-rdsw0 --json | jq -e --arg s "$1" '.[0].state == $s'
	}
	state undrained
	dsf link down $P0-rdsw0:fab1
	wait_until 10 state "below minimum links"
	wait_until 10 port $P0-fdsw0 fab0 .peer_drained
	LAB=$other pings b0-z0-h0 b0-z0-h1 5
	dsf link up $P0-rdsw0:fab1
	wait_until 10 state undrained
	wait_until 10 port $P0-fdsw0 fab0 '.active_state == "active"'
}
