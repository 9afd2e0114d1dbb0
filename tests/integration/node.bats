#!/usr/bin/env bats
# Nodes that die, freeze and come back; the others are never restarted.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	LAB=$(lab_name no)
	export LAB
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
}

teardown()
{
	[ "$(id -u)" = 0 ] || return 0
	for node in b0-z0-p0-fdsw0 b0-z0-h3; do
		dsf node start $node --lab "$LAB" || true
	done
	wait_until 20 dsf status "$LAB"
}

carrier()
{
	[ "$(dsf exec "$1" --lab "$LAB" -- cat "/sys/class/net/$2/carrier" 2>/dev/null || echo 0)" = "$3" ]
}

others()
{
	dsf status "$LAB" --json | jq -c --arg node "$1" '[.nodes[] | select(.name != $node) | [.name, .pid]]'
}

state()
{
	dsf status "$LAB" --json | jq -r --arg node "$1" '.nodes[] | select(.name == $node) | .state'
}

flood()
{
	dsf exec b0-z0-h0 --lab "$LAB" -- ping -6 -q -c "$1" -i 0.02 -W 2 "$(address "$LAB" b0-z0-h3 gpu0p0)"
}

@test "kill: status tells, links are down, traffic moves around it, restart brings it back" {
	before=$(others b0-z0-p0-fdsw0)
	dsf node kill b0-z0-p0-fdsw0 --lab "$LAB"
	run --separate-stderr dsf status "$LAB" --json
	[ "$status" -eq 1 ]
	echo "$output" | jq -e '.state == "degraded" and
		any(.nodes[]; .name == "b0-z0-p0-fdsw0" and .state == "dead" and .pid == null) and
		([.links[] | select(.state == "down") | .b] | length) == 4 and
		all(.links[] | select(.state == "down"); .b | startswith("b0-z0-p0-fdsw0:"))'
	wait_until 5 carrier b0-z0-p0-rdsw0 fab0 0
	wait_until 5 carrier b0-z0-p0-rdsw3 fab0 0
	flood 50 | grep -q ' 0% packet loss'
	dsf node restart b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
	[ "$(others b0-z0-p0-fdsw0)" = "$before" ]
	flood 50 | grep -q ' 0% packet loss'
}

@test "a process that is killed from outside is a dead node too" {
	kill -9 "$(node_pid "$LAB" b0-z0-p0-fdsw0)"
	wait_until 5 sh -c "! timeout 60 '$DSFEMU' status '$LAB'"
	[ "$(state b0-z0-p0-fdsw0)" = dead ]
	dsf node start b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
}

@test "stop and start" {
	dsf node stop b0-z0-p0-fdsw0 --lab "$LAB"
	[ "$(state b0-z0-p0-fdsw0)" = stopped ]
	wait_until 5 carrier b0-z0-p0-rdsw1 fab0 0
	run dsf node stop b0-z0-p0-fdsw0 --lab "$LAB"
	[ "$status" -eq 1 ]
	dsf node start b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
	dsf node start b0-z0-p0-fdsw0 --lab "$LAB" # already there: nothing to do
}

@test "freeze keeps the carrier, neighbours leave it, start resumes the same process" {
	pid=$(node_pid "$LAB" b0-z0-p0-fdsw0)
	dsf node freeze b0-z0-p0-fdsw0 --lab "$LAB"
	[ "$(state b0-z0-p0-fdsw0)" = frozen ]
	carrier b0-z0-p0-rdsw0 fab0 1
	wait_until 10 sh -c "! timeout 60 '$DSFEMU' status '$LAB'"
	wait_until 10 sh -c "timeout 60 '$DSFEMU' status '$LAB' --json | jq -e '
		([.links[] | select(.state == \"down\")] | length) == 4'"
	flood 50 | grep -q ' 0% packet loss'
	dsf node start b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 20 dsf status "$LAB"
	[ "$(node_pid "$LAB" b0-z0-p0-fdsw0)" = "$pid" ]
}

@test "a frozen node can be killed and restarted" {
	dsf node freeze b0-z0-p0-fdsw0 --lab "$LAB"
	dsf node kill b0-z0-p0-fdsw0 --lab "$LAB"
	[ "$(state b0-z0-p0-fdsw0)" = dead ]
	dsf node restart b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
}

@test "restart of a frozen node is a new process, start lets the old one go on" {
	pid=$(node_pid "$LAB" b0-z0-p0-fdsw0)
	dsf node freeze b0-z0-p0-fdsw0 --lab "$LAB"
	dsf node start b0-z0-p0-fdsw0 --lab "$LAB"
	[ "$(node_pid "$LAB" b0-z0-p0-fdsw0)" = "$pid" ]
	dsf node freeze b0-z0-p0-fdsw0 --lab "$LAB"
	dsf node restart b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
	[ "$(node_pid "$LAB" b0-z0-p0-fdsw0)" != "$pid" ]
}

@test "restart of a running node is a new process in the same namespace" {
	pid=$(node_pid "$LAB" b0-z0-p0-fdsw0)
	space=$(dsf exec b0-z0-p0-fdsw0 --lab "$LAB" -- readlink /proc/self/ns/net)
	dsf node restart b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
	[ "$(node_pid "$LAB" b0-z0-p0-fdsw0)" != "$pid" ]
	[ "$(dsf exec b0-z0-p0-fdsw0 --lab "$LAB" -- readlink /proc/self/ns/net)" = "$space" ]
}

@test "a host that died has its addresses and routes when it comes back" {
	dsf node kill b0-z0-h3 --lab "$LAB"
	wait_until 5 carrier b0-z0-p0-rdsw2 eth1 0
	dsf node restart b0-z0-h3 --lab "$LAB"
	wait_until 10 dsf status "$LAB"
	wait_until 10 flood 2
	flood 20 | grep -q ' 0% packet loss'
	dsf exec b0-z0-h3 --lab "$LAB" -- ip -6 route show | grep -q '^fd5f::/24 via'
}

@test "wrong use" {
	run dsf node kill no-such-node --lab "$LAB"
	[ "$status" -eq 2 ]
	[ "$output" = "dsfemu: no-such-node: no such node" ]
	run dsf node dance b0-z0-h0 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf node kill --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf node kill b0-z0-h0 --lab nolab
	[ "$status" -eq 1 ]
	dsf status "$LAB"
}

@test "a second run, and a run with a dead host, are refused and harm nothing" {
	dsf run permutation --lab "$LAB" --size 1M --iterations 60 >"$BATS_TEST_TMPDIR/first" 3>&- &
	first=$!
	locked()
	{
		# To try the lock would take it, and the run would be refused.
		grep -q ":$(stat -c %i "/run/dsfemu/$LAB/lab.json") " /proc/locks
	}
	wait_until 10 locked
	run dsf run udp --lab "$LAB" --duration 20us
	[ "$status" -eq 1 ]
	[[ "$output" == *"another run or drill is under way"* ]]
	wait "$first"
	grep -q "verified: 0 bytes wrong, 0 lost" "$BATS_TEST_TMPDIR/first"

	dsf node kill b0-z0-h3 --lab "$LAB"
	run dsf run permutation --lab "$LAB" --size 64K
	[ "$status" -eq 1 ]
	[[ "$output" == *"b0-z0-h3: dead"* ]]
	dsf run write --lab "$LAB" --hosts b0-z0-h0,b0-z0-h2 --size 64K
	dsf node start b0-z0-h3 --lab "$LAB"
}

@test "a run ends when a host of it is restarted, says what is lost, and the next one is whole" {
	local pid code=0

	timeout 100 "$DSFEMU" run write --lab "$LAB" --hosts b0-z0-h0,b0-z0-h3 --size 4M \
		--iterations 5000 --json >"$BATS_TEST_TMPDIR/hit" 3>&- &
	pid=$!
	sleep 1
	dsf node restart b0-z0-h3 --lab "$LAB"
	wait "$pid" || code=$?
	[ "$code" -eq 1 ]
	jq -e '(.verified | not) and .lost > 0 and .messages + .lost == .flows * .iterations' \
		"$BATS_TEST_TMPDIR/hit"
	wait_until 10 dsf status "$LAB"
	dsf run permutation --lab "$LAB" --size 64K
}

@test "run ends with 128+N on a signal, and its workload with it" {
	local pid code signal

	for signal in INT-130 TERM-143; do
		code=0
		# Ctrl-C reaches no process that the shell has put behind by &.
		env --default-signal=INT "$DSFEMU" run write --lab "$LAB" --size 4M \
			--iterations 500 --json >"$BATS_TEST_TMPDIR/signal" 3>&- &
		pid=$!
		sleep 1
		kill -"${signal%-*}" "$pid"
		wait "$pid" || code=$?
		[ "$code" -eq "${signal#*-}" ]
		jq -e 'has("verified")' "$BATS_TEST_TMPDIR/signal"
	done
	dsf run write --lab "$LAB" --size 64K
}

@test "a run whose lab ends under it fails with a word" {
	local run code=0

	dsf run permutation --lab "$LAB" --size 4M --iterations 64 >"$BATS_TEST_TMPDIR/run.out" \
		2>"$BATS_TEST_TMPDIR/run.err" 3>&- &
	run=$!
	wait_until 10 sh -c "'$DSFEMU' show qp --lab '$LAB' --json | jq -e 'length > 0'"
	dsf down "$LAB"
	wait "$run" || code=$?
	[ "$code" -eq 1 ]
	grep -q "ending\|ended" "$BATS_TEST_TMPDIR/run.err"
	dsf up "$MINI" --name "$LAB" --quiet
}

@test "a node that is still ending when it is started comes back" {
	command -v socat >/dev/null || skip "no socat"
	answers=$(printf '%s\n' '{"id":1,"op":"process","node":"b0-z0-p0-fdsw0","action":"kill"}' \
		'{"id":2,"op":"process","node":"b0-z0-p0-fdsw0","action":"start"}' |
		timeout 60 socat -t 30 - "UNIX-CONNECT:/run/dsfemu/$LAB/control")
	[ "$(jq -c '[.id, .result]' <<<"$answers")" = $'[1,{}]\n[2,{}]' ]
	dsf status "$LAB"
	printf '%s\n' '{"op":"process","node":"b0-z0-p0-fdsw0","action":"freeze"}' \
		'{"op":"process","node":"b0-z0-p0-fdsw0","action":"kill"}' \
		'{"op":"process","node":"b0-z0-p0-fdsw0","action":"restart"}' |
		timeout 60 socat -t 30 - "UNIX-CONNECT:/run/dsfemu/$LAB/control"
	dsf status "$LAB"
}

@test "start returns when the others have it back too" {
	for i in 1 2 3; do
		dsf node kill b0-z0-p0-fdsw0 --lab "$LAB"
		dsf node start b0-z0-p0-fdsw0 --lab "$LAB"
		dsf status "$LAB"
	done
}
