#!/usr/bin/env bats
# What a live fabric promises: verified data, fair and lossless, sprayed evenly, around failures.
# No test asserts a wall-clock time or a rate that a busy machine could miss; those are compared by
# scripts/agree and scripts/bench.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	export LAB=fab$$
	timeout 120 "$DSFEMU" up "$DSF_SOURCE/topologies/mini.json" --name "$LAB" --quiet
}

teardown_file()
{
	[ "$(id -u)" = 0 ] || return 0
	"$DSFEMU" down "$LAB" --kill --quiet
}

setup()
{
	need_root
}

lab()
{
	timeout 120 "$DSFEMU" "$@" --lab "$LAB"
}

# check JSON FILTER: the filter says true
check()
{
	if [ "$(jq "$2" <<<"$1")" != true ]; then
		echo "not true: $2"
		echo "$1"
		return 1
	fi
}

whole()
{
	[ "$(lab status --json | jq -r .state)" = ready ]
}

# links SWITCH DESTINATION: by how many links it reaches it
links()
{
	lab show fabric reachability "$2" --node "$1" --json | jq '.[0].output | length'
}

reached_by()
{
	[ "$(links "$1" "$2")" = "$3" ]
}

no_fabric_fault()
{
	check "$(lab show counters --json)" '[.[] | .fabric_drops + .reassembly_errors] | add == 0'
}

@test "write: every byte checked, over the fabric" {
	result=$(lab run write --size 256K --iterations 4 --json)
	check "$result" '.verified and .lost == 0 and .duplicated == 0 and .bytes_wrong == 0'
	check "$result" '.bytes == .size_bytes * .iterations * .flows and .bytes_zone >= .bytes * 0.95'
	check "$result" '.fidelity | has("valid") and has("late_p99_ns") and has("emulator_drops")'
}

@test "permutation: every byte checked, both ways at once" {
	result=$(lab run permutation --size 256K --iterations 4 --json)
	check "$result" '.verified and .messages == .flows * .iterations'
}

@test "a seed of 63 bits, which a double has no room for" {
	result=$(lab run write --size 4K --seed 9223372036854775807 --json)
	check "$result" '.verified'
}

@test "incast: every byte arrives, the fabric loses nothing" {
	result=$(lab run incast --size 64K --iterations 4 --json)
	check "$result" '.verified'
	no_fabric_fault
}

@test "datagrams beyond what a GPU can take are dropped at VOQs only, in order, fairly" {
	before=$(lab show counters --json | jq '[.[].voq_drops] | add')
	result=$(lab run udp --hosts b0-z0-h0:gpu0,b0-z0-h0:gpu1,b0-z0-h2:gpu0,b0-z0-h2:gpu1 \
		--plane 0 --size 4096 --duration 400us --json)
	check "$result" '.bytes_wrong == 0 and .reordered == 0 and .duplicated == 0'
	# Fairness is the model's: a run that the machine was too slow for says nothing of it.
	check "$result" '.jain >= 0.99 or (.fidelity.valid | not)'
	after=$(lab show counters --json | jq '[.[].voq_drops] | add')
	[ "$after" -gt "$before" ]
	no_fabric_fault
}

@test "spraying: an RDSW's fabric links carry the same bytes within 5 %" {
	lab run permutation --size 1M --iterations 4 --json >/dev/null
	for switch in b0-z0-p0-rdsw0 b0-z0-p1-rdsw3; do
		result=$(lab show port --node "$switch" --json)
		check "$result" '[.[] | select(.port | startswith("fab")) | .cell_bytes_tx]
			| length == 2 and min > 0 and max - min <= 0.05 * max'
	done
}

@test "a link that is taken down is left by both ends, and comes back" {
	lab link down b0-z0-p0-rdsw0:fab0
	wait_until 10 reached_by b0-z0-p0-rdsw0 b0-z0-p0-rdsw1 1
	wait_until 10 reached_by b0-z0-p0-fdsw0 b0-z0-p0-rdsw0 0
	run lab status
	[ "$status" -eq 1 ]
	result=$(lab run write --size 128K --json)
	check "$result" '.verified'
	lab link up b0-z0-p0-rdsw0:fab0
	wait_until 10 whole
	wait_until 10 reached_by b0-z0-p0-rdsw0 b0-z0-p0-rdsw1 2
}

@test "a link that dies in one direction is left by both ends, and recovers" {
	lab link impair b0-z0-p0-rdsw1:fab1 --silent
	wait_until 20 reached_by b0-z0-p0-rdsw1 b0-z0-p0-rdsw0 1
	wait_until 20 reached_by b0-z0-p0-fdsw1 b0-z0-p0-rdsw1 0
	result=$(lab run write --size 128K --json)
	check "$result" '.verified'
	lab link reset b0-z0-p0-rdsw1:fab1
	wait_until 20 reached_by b0-z0-p0-rdsw1 b0-z0-p0-rdsw0 2
	wait_until 20 reached_by b0-z0-p0-fdsw1 b0-z0-p0-rdsw1 1
}

@test "a link that loses 1 % is isolated, nothing is lost end to end, and it recovers" {
	lab link impair b0-z0-p1-rdsw2:fab0 --loss 1%
	# Judged over the last few thousand cells: enough of them must have crossed the bad link.
	result=$(lab run permutation --size 1M --iterations 24 --json)
	check "$result" '.verified'
	wait_until 20 reached_by b0-z0-p1-rdsw2 b0-z0-p1-rdsw0 1
	lab link reset b0-z0-p1-rdsw2:fab0
	wait_until 30 reached_by b0-z0-p1-rdsw2 b0-z0-p1-rdsw0 2
}

@test "a dead switch: status says so, traffic goes round it, a restart brings it back" {
	before=$(lab status --json | jq -c '[.nodes[] | {name, pid}]')
	lab node kill b0-z0-p0-fdsw1
	wait_until 10 reached_by b0-z0-p0-rdsw0 b0-z0-p0-rdsw1 1
	run lab status --json
	[ "$status" -eq 1 ]
	check "$output" '.state == "degraded" and
		([.nodes[] | select(.state == "dead") | .name] == ["b0-z0-p0-fdsw1"])'
	result=$(lab run write --size 128K --json)
	check "$result" '.verified'
	lab node restart b0-z0-p0-fdsw1
	wait_until 20 whole
	after=$(lab status --json | jq -c '[.nodes[] | {name, pid}]')
	# The others never restarted.
	check "$(jq -cn --argjson a "$before" --argjson b "$after" '[$a - $b, $b - $a]')" \
		'map(map(.name)) == [["b0-z0-p0-fdsw1"], ["b0-z0-p0-fdsw1"]]'
	result=$(lab run write --size 128K --json)
	check "$result" '.verified'
}

@test "a frozen switch keeps carrier and is left all the same" {
	lab node freeze b0-z0-p1-fdsw0
	wait_until 20 reached_by b0-z0-p1-rdsw0 b0-z0-p1-rdsw1 1
	result=$(lab run write --size 64K --json)
	check "$result" '.verified'
	lab node start b0-z0-p1-fdsw0
	wait_until 20 whole
	wait_until 10 reached_by b0-z0-p1-rdsw0 b0-z0-p1-rdsw1 2
}

@test "Ctrl-C ends a run, not the lab" {
	timeout -s INT 2 "$DSFEMU" run write --size 4M --iterations 100000 --lab "$LAB" --json \
		>"$BATS_TEST_TMPDIR/out" 2>/dev/null || status=$?
	[ "$status" -eq 124 ] || [ "$status" -eq 130 ]
	whole
	result=$(lab run write --size 64K --json)
	check "$result" '.verified'
}
