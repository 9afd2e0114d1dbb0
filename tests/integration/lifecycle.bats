#!/usr/bin/env bats
# A lab's life: all or nothing, whatever is killed when, and nobody else's things are touched.

bats_require_minimum_version 1.5.0
load lib.bash

setup()
{
	need_root
	LAB=$(lab_name lc)
	OTHER=$(lab_name ld)
	CLEAN=()
}

teardown()
{
	local what

	[ "$(id -u)" = 0 ] || return 0
	for what in "${CLEAN[@]}"; do
		kill -9 "$what" 2>/dev/null || true
	done
	"$DSFEMU" down "$LAB" --kill --quiet || true
	"$DSFEMU" down "$OTHER" --kill --quiet || true
	rm -f "/run/netns/$LAB-file"
	for what in "$LAB-stranger" "${LAB}x-h0"; do
		ip netns del "$what" 2>/dev/null || true
	done
}

@test "up returns when the lab is ready, and says so in JSON" {
	run --separate-stderr dsf up "$MINI" --name "$LAB" --json
	[ "$status" -eq 0 ]
	echo "$output" | jq -e --arg lab "$LAB" '
		.lab == $lab and .state == "ready" and (.time_dilation | type) == "number" and
		(.nodes | length) == 16 and (.links | length) == 32 and
		all(.nodes[]; .state == "ready" and (.pid | type) == "number" and
			.netns == $lab + "-" + .name) and
		all(.links[]; .state == "up") and
		.sessions.fsdb == {"established": 24, "expected": 24} and .sessions.bgp.expected == 0'
	echo "$output" | jq -e '(keys - ["fidelity","lab","links","nodes","sessions","state",
		"time_dilation"]) == []'
	echo "$output" | jq -e '(.fidelity | keys) == ["allowed_p99_ns","emulator_drops","late_p99_ns",
		"quantum_ns","suggested_time_dilation","valid"]'
	run dsf status "$LAB"
	[ "$status" -eq 0 ]
}

@test "a lab is marked: aliases, environments, state" {
	dsf up "$MINI" --name "$LAB"
	for ns in $(find /run/netns -name "$LAB-*" -printf '%f\n'); do
		ip netns exec "$ns" ip -o link show dev lo | grep -F "alias dsfemu:$LAB:${ns#"$LAB-"}"
	done
	[ "$(marked "$LAB" | wc -l)" -eq 17 ]
	jq -e '.time_dilation >= 1 and ._epoch_ns > 0' "/run/dsfemu/$LAB/lab.json"
	"$DSFEMU" validate "/run/dsfemu/$LAB/lab.json"
}

@test "down leaves nothing, and the root namespace never changes" {
	before=$(root_state)
	dsf up "$MINI" --name "$LAB"
	[ "$(root_state)" = "$before" ]
	dsf down "$LAB"
	nothing_left "$LAB"
	[ "$(root_state)" = "$before" ]
	run dsf down "$LAB"
	[ "$status" -eq 0 ]
	nothing_left "$LAB"
}

@test "down of a lab that isn't there says so, and makes nothing" {
	run dsf down "$LAB"
	[ "$status" -eq 0 ]
	[[ "$output" == "dsfemu: lab $LAB: there is nothing of it"* ]]
	[ ! -e "/run/dsfemu/$LAB" ]
}

@test "a second up of the same name is refused and harms nothing" {
	dsf up "$MINI" --name "$LAB"
	run dsf up "$MINI" --name "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"is up already"* ]]
	dsf status "$LAB"
}

@test "two labs from one file, side by side; JSON parses with 0, 1, 2 labs" {
	dsf list --json -v | jq -e 'type == "array"'
	dsf up "$MINI" --name "$LAB"
	dsf list --json -v | jq -e --arg a "$LAB" 'any(.[]; .lab == $a and .state == "ready")'
	dsf up "$MINI" --name "$OTHER"
	dsf list --json | jq -e --arg a "$LAB" --arg b "$OTHER" \
		'[.[] | select(.lab == $a or .lab == $b) | .nodes] == [16, 16]'
	dsf status --json -v --lab "$OTHER" | jq -e '.state == "ready"'
	dsf down "$LAB"
	nothing_left "$LAB"
	dsf status "$OTHER"
	dsf down "$OTHER"
	nothing_left "$OTHER"
}

@test "a bad file: exit 2, nothing is made" {
	echo '{"name":"x","planes":0}' >"$BATS_TEST_TMPDIR/bad.json"
	run dsf up "$BATS_TEST_TMPDIR/bad.json" --name "$LAB"
	[ "$status" -eq 2 ]
	nothing_left "$LAB"
	run dsf up "$BATS_TEST_TMPDIR/missing.json" --name "$LAB"
	[ "$status" -eq 2 ]
	run dsf up "$MINI" --name 'a/b'
	[ "$status" -eq 2 ]
	run dsf up "$MINI" --name "$LAB" --timeout 0
	[ "$status" -eq 2 ]
	run dsf up "$MINI" --name "$LAB" --time-dilation 0
	[ "$status" -eq 2 ]
	nothing_left "$LAB"
}

@test "a name that is taken: up fails, undoes everything, leaves the stranger's" {
	ip netns add "$LAB-b0-z0-p1-fdsw1"
	run dsf up "$MINI" --name "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"$LAB-b0-z0-p1-fdsw1"* ]]
	[ "$(find /run/netns -name "$LAB-*" | wc -l)" -eq 1 ]
	ip netns exec "$LAB-b0-z0-p1-fdsw1" true
	ip netns del "$LAB-b0-z0-p1-fdsw1"
	nothing_left "$LAB"
}

@test "SIGINT and SIGTERM at any moment of up: 130 or 143, nothing left" {
	for delay in 0.01 0.03 0.06 0.1 0.15 0.2 0.3; do
		for signal in INT TERM; do
			"$DSFEMU" up "$MINI" --name "$LAB" >/dev/null 2>&1 &
			pid=$!
			sleep $delay
			kill -$signal $pid 2>/dev/null || true
			code=0
			wait $pid || code=$?
			echo "$signal after $delay: $code"
			case $signal-$code in
			INT-130 | TERM-143) ;;
			*-0) dsf down "$LAB" ;; # it was faster
			*) false ;;
			esac
			nothing_left "$LAB"
		done
	done
}

@test "SIGKILL of up at any moment: down succeeds, nothing left" {
	for delay in 0.01 0.04 0.08 0.12 0.2 0.3; do
		"$DSFEMU" up "$MINI" --name "$LAB" >/dev/null 2>&1 &
		pid=$!
		sleep $delay
		kill -9 $pid 2>/dev/null || true
		wait $pid || true
		dsf down "$LAB"
		nothing_left "$LAB"
	done
}

@test "SIGKILL of the supervisor at any moment: the next up succeeds" {
	for delay in 0 0.03 0.06 0.1 0.2; do
		"$DSFEMU" up "$MINI" --name "$LAB" >/dev/null 2>&1 &
		pid=$!
		wait_until 10 test -s "/run/dsfemu/$LAB/lock"
		sleep $delay
		kill -9 "$(supervisor_pid "$LAB")" || true
		wait $pid || true
		wait_until 10 dsf up "$MINI" --name "$LAB"
		dsf status "$LAB"
		dsf down "$LAB"
		nothing_left "$LAB"
	done
}

none_marked()
{
	[ -z "$(marked "$LAB")" ]
}

@test "SIGKILL of everything at once: status tells, down and up succeed" {
	dsf up "$MINI" --name "$LAB"
	# shellcheck disable=SC2046
	kill -9 $(marked "$LAB")
	wait_until 10 none_marked
	run --separate-stderr dsf status "$LAB" --json
	[ "$status" -eq 1 ]
	echo "$output" | jq -e '.state == "failed" and all(.nodes[]; .state == "dead") and
		.fidelity.valid == false and .fidelity.late_p99_ns == null'
	[[ $(dsf status "$LAB") == *"fidelity: unknown, no process is left to say"* ]]
	dsf list --json | jq -e --arg a "$LAB" 'any(.[]; .lab == $a and .state == "failed")'
	dsf down "$LAB"
	nothing_left "$LAB"

	dsf up "$MINI" --name "$LAB"
	kill -9 "$(supervisor_pid "$LAB")"
	dsf down "$LAB"
	nothing_left "$LAB"
}

@test "up whose result can't be written undoes itself" {
	for option in "" --json; do
		code=0
		timeout 60 "$DSFEMU" up "$MINI" --name "$LAB" $option >/dev/full || code=$?
		[ $code -eq 1 ]
		nothing_left "$LAB"
	done
	timeout 60 "$DSFEMU" up "$MINI" --name "$LAB" --quiet >&-
	dsf down "$LAB"
}

@test "down while up builds cancels it and waits" {
	for delay in 0.02 0.08 0.15 0.25; do
		"$DSFEMU" up "$MINI" --name "$LAB" >"$BATS_TEST_TMPDIR/out" 2>&1 &
		pid=$!
		wait_until 10 test -s "/run/dsfemu/$LAB/lock"
		sleep $delay
		dsf down "$LAB"
		nothing_left "$LAB"
		code=0
		wait $pid || code=$?
		echo "after $delay: $code $(cat "$BATS_TEST_TMPDIR/out")"
		[ $code -eq 0 ] || [ $code -eq 1 ]
	done
}

# All places of the lab's socket are taken: seen from outside, since who asks takes a place himself.
full()
{
	[ "$(ss -xH src "/run/dsfemu/$1/control" | grep -c ESTAB)" -ge 64 ]
}

# Takes all places of the lab's socket, and says nothing. Leaves descriptor 5 open.
fill_socket()
{
	local i

	mkfifo "$BATS_TEST_TMPDIR/idle"
	exec 5<>"$BATS_TEST_TMPDIR/idle"
	for ((i = 0; i < 64; i++)); do
		socat -u PIPE:"$BATS_TEST_TMPDIR/idle" UNIX-CONNECT:"/run/dsfemu/$1/control" \
			3>&- 5>&- &
		CLEAN+=("$!")
	done
	wait_until 20 full "$1"
}

@test "clients that ask for nothing keep no command out for long" {
	local run code=0

	command -v socat >/dev/null || skip "needs socat"
	dsf up "$MINI" --name "$LAB"
	# One that works isn't taken for one of them.
	dsf run write --lab "$LAB" --size 4M --iterations 12 >"$BATS_TEST_TMPDIR/run" 3>&- &
	run=$!
	fill_socket "$LAB"
	wait_until 10 dsf status "$LAB"
	dsf show fabric reachability --lab "$LAB"
	wait "$run" || code=$?
	[ "$code" -eq 0 ]
	exec 5>&-
}

@test "down ends a lab whose control socket has no room left" {
	command -v socat >/dev/null || skip "needs socat"
	dsf up "$MINI" --name "$LAB"
	fill_socket "$LAB"
	run dsf down "$LAB"
	[ "$status" -eq 0 ]
	nothing_left "$LAB"
	exec 5>&-
}

@test "a stranger's shell in a namespace is named and stays, --kill ends it" {
	dsf up "$MINI" --name "$LAB"
	env -u DSFEMU_LAB ip netns exec "$LAB-b0-z0-h0" sleep 1000 3>&- &
	CLEAN+=($!)
	wait_until 5 ip netns pids "$LAB-b0-z0-h0"
	stranger=$!
	wait_until 5 sh -c "ip netns pids '$LAB-b0-z0-h0' | grep -qx $stranger"
	run dsf down "$LAB"
	[ "$status" -eq 0 ]
	[[ "$output" == *"$stranger"* ]]
	[[ "$output" == *sleep* ]]
	kill -0 "$stranger"
	nothing_left "$LAB"
	# Its namespace has no name, no mark and no link any more.
	[ "$(nsenter -t "$stranger" -n ip -o link show | grep -vc ': lo:')" -eq 0 ]
	[ -z "$(nsenter -t "$stranger" -n ip -o link show dev lo | grep dsfemu)" ]
	kill -9 "$stranger"

	dsf up "$MINI" --name "$LAB"
	env -u DSFEMU_LAB ip netns exec "$LAB-b0-z0-p0-rdsw1" sleep 1000 3>&- &
	stranger=$!
	CLEAN+=($!)
	wait_until 5 sh -c "ip netns pids '$LAB-b0-z0-p0-rdsw1' | grep -qx $stranger"
	dsf down "$LAB" --kill
	! kill -0 "$stranger" 2>/dev/null
	nothing_left "$LAB"
}

@test "what exec started ends with the lab" {
	dsf up "$MINI" --name "$LAB"
	"$DSFEMU" exec b0-z0-h1 --lab "$LAB" -- sleep 1000 3>&- &
	pid=$!
	wait_until 5 sh -c "ip netns pids '$LAB-b0-z0-h1' | grep -qx $pid"
	dsf down "$LAB"
	code=0
	wait $pid || code=$?
	[ $code -eq 143 ]
	nothing_left "$LAB"
}

@test "events are told until the lab has ended, which ends them well" {
	dsf up "$MINI" --name "$LAB" --quiet
	"$DSFEMU" events "$LAB" --json >"$BATS_TEST_TMPDIR/events" 2>"$BATS_TEST_TMPDIR/errors" 3>&- &
	CLEAN+=($!)
	wait_until 5 grep -q listening "$BATS_TEST_TMPDIR/errors"
	dsf down "$LAB"
	wait $!
	jq -es '[.[] | select(.event == "stopped").node] | unique | length == 16' "$BATS_TEST_TMPDIR/events"
}

@test "down works without the file, with dead nodes, under a low ulimit -n" {
	cp "$MINI" "$BATS_TEST_TMPDIR/t.json"
	dsf up "$BATS_TEST_TMPDIR/t.json" --name "$LAB"
	rm "$BATS_TEST_TMPDIR/t.json"
	for node in b0-z0-h0 b0-z0-p0-rdsw0 b0-z0-p1-fdsw1; do
		kill -9 "$(node_pid "$LAB" $node)"
	done
	dsf down "$LAB"
	nothing_left "$LAB"

	dsf up "$MINI" --name "$LAB"
	kill -9 "$(supervisor_pid "$LAB")"
	(ulimit -n 12 && exec timeout 60 "$DSFEMU" down "$LAB")
	nothing_left "$LAB"
}

@test "strangers with similar names are never touched" {
	ip netns add "$LAB-stranger"
	ip netns add "${LAB}x-h0"
	echo "dsfemu:somebody" >"/run/netns/$LAB-file"
	env DSFEMU_LAB="$LAB" sleep 1000 3>&- & # in the root namespace: somebody's choice of lab
	chosen=$!
	env DSFEMU_LAB="${LAB}x" sleep 1000 3>&- &
	similar=$!
	CLEAN+=($chosen $similar)
	ip netns exec "$LAB-stranger" ip link add "$LAB" type veth peer name other
	dsf up "$MINI" --name "$LAB"
	dsf down "$LAB"
	dsf up "$MINI" --name "$LAB"
	kill -9 "$(supervisor_pid "$LAB")"
	dsf down "$LAB"
	kill -0 $chosen
	kill -0 $similar
	ip netns exec "$LAB-stranger" ip link show "$LAB"
	ip netns exec "${LAB}x-h0" true
	grep -qx dsfemu:somebody "/run/netns/$LAB-file"
	[ "$(find /run/netns -name "$LAB-*" | wc -l)" -eq 2 ]
	rm "/run/netns/$LAB-file"
}

@test "Ctrl-C in other commands never harms a lab" {
	dsf up "$MINI" --name "$LAB"
	timeout -s INT 0.3 "$DSFEMU" exec b0-z0-h0 --lab "$LAB" -- sleep 100 || true
	for delay in 0.001 0.005 0.02; do
		timeout -s INT $delay "$DSFEMU" status "$LAB" >/dev/null || true
		timeout -s KILL $delay "$DSFEMU" link down b0-z0-p0-rdsw0:fab0 --lab "$LAB" || true
		timeout -s INT $delay "$DSFEMU" list >/dev/null || true
	done
	dsf link up b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
}

@test "out of time: what is missing is named and everything undone; --keep leaves it" {
	freeze_first()
	{
		wait_until 10 test -s "/run/dsfemu/$LAB/lock"
		wait_until 10 pgrep -f "^dsfemu-node $LAB b0-z0-p0-rdsw2"
		kill -STOP "$(pgrep -f "^dsfemu-node $LAB b0-z0-p0-rdsw2")"
	}
	freeze_first 3>&- &
	run --separate-stderr dsf up "$MINI" --name "$LAB" --timeout 2 --json
	if [ "$status" -ne 0 ]; then # else it was ready before it froze
		[ "$status" -eq 1 ]
		echo "$output" | jq -e '.state == "failed" and
			any(.missing[]; .node == "b0-z0-p0-rdsw2") and
			all(.missing[]; (keys - ["expected","node","seen","what"]) == [])'
		[[ "$stderr" == *"b0-z0-p0-rdsw2"* ]]
		nothing_left "$LAB"
	fi
	dsf down "$LAB"

	freeze_first 3>&- &
	run --separate-stderr dsf up "$MINI" --name "$LAB" --timeout 2 --keep --json
	if [ "$status" -ne 0 ]; then
		[ "$status" -eq 1 ]
		echo "$output" | jq -e '.state == "degraded"'
		run dsf status "$LAB"
		[ "$status" -eq 1 ]
	fi
}

@test "low limits: raised, or refused before anything is made, with the limit named" {
	(ulimit -Sn 30 && exec timeout 60 "$DSFEMU" up "$MINI" --name "$LAB")
	dsf status "$LAB"
	dsf down "$LAB"
	run bash -c "ulimit -n 60; exec timeout 60 '$DSFEMU' up '$MINI' --name '$LAB'"
	[ "$status" -eq 3 ]
	[[ "$output" == *"ulimit"* ]]
	nothing_left "$LAB"
}

@test "too few processes allowed: refused before anything is made" {
	group=
	for root in /sys/fs/cgroup/pids /sys/fs/cgroup; do
		if mkdir "$root/$LAB" 2>/dev/null && [ -e "$root/$LAB/pids.max" ]; then
			group=$root/$LAB
			break
		fi
		rmdir "$root/$LAB" 2>/dev/null || true
	done
	[ -n "$group" ] || skip "no pids controller"
	echo 12 >"$group/pids.max"
	run bash -c "echo \$\$ >'$group/cgroup.procs'; exec timeout 60 '$DSFEMU' up '$MINI' --name '$LAB'"
	rmdir "$group" || true
	[ "$status" -eq 3 ]
	[[ "$output" == *"pids.max"* ]]
	nothing_left "$LAB"
}

@test "doctor finds this machine fit" {
	run --separate-stderr dsf doctor --json
	[ "$status" -eq 0 ]
	echo "$output" | jq -e 'length > 10 and all(.[]; (.check | type) == "string" and
		(.state == "ok" or (.mend | type) == "string"))'
}
