#!/usr/bin/env bats
# Drills on a live lab: held, broken by what is planted, unknown on a machine that is too slow;
# healed whatever ends the command.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	LAB=$(lab_name ch)
	export LAB
	dsf up "$MINI" --name "$LAB" --time-dilation 30000
}

teardown_file()
{
	[ "$(id -u)" = 0 ] || return 0
	"$DSFEMU" down "$LAB" --kill
}

setup()
{
	need_root
	drill=
	cd "$BATS_TEST_TMPDIR"
	# A little load, so that a busy machine keeps up.
	cat >drill.json <<-'END'
		{
		  "name": "bats", "seed": 3, "settle": "60us",
		  "workload": { "kind": "permutation", "size": "64K",
		    "hosts": "b0-z0-h0:gpu0,b0-z0-h2:gpu1" },
		  "faults": [
		    { "at": "20us", "for": "80us", "kind": "link down",
		      "target": "b0-z0-p0-rdsw0:fab0" },
		    { "at": "40us", "for": "80us", "kind": "link impair", "delay": "1us",
		      "target": "b0-z0-p1-rdsw2:fab1" } ]
		}
	END
}

teardown()
{
	[ "$(id -u)" = 0 ] || return 0
	# Whatever a test that failed has left.
	[ -z "$drill" ] || kill -KILL $drill 2>/dev/null || true
	dsf exec b0-z0-p1-rdsw3 --lab "$LAB" -- ip link set fab0 up
	wait_until 30 dsf status "$LAB"
}

# Ends the wait for a background drill that doesn't end: teardown kills it.
ended()
{
	! kill -0 $drill 2>/dev/null
}

asked()
{
	printf '{"op":"asked"}\n' | timeout 5 socat -t 2 - "UNIX-CONNECT:/run/dsfemu/$LAB/control"
}

healed()
{
	asked | jq -e '.result == {"links": [], "nodes": [], "drained": []}' && dsf status "$LAB"
}

broken()
{
	asked | jq -e '.result.links != []'
}

@test "a drill holds, and its faults are those of the simulator" {
	# Where this machine was too slow there is no verdict: again.
	for _ in 1 2 3; do
		run --separate-stderr dsf chaos drill.json --lab "$LAB" --json
		echo "$output"
		echo "$output" >live.json
		jq -e '.verdict == "unknown"' live.json || break
	done
	[ "$status" -eq 0 ]
	jq -e '.verdict == "held" and .seed == 3 and .messages > 0 and
		[.faults[] | [.at_ns, .kind, .target]] == [
			[20000, "link down", "b0-z0-p0-rdsw0:fab0"],
			[40000, "link impair", "b0-z0-p1-rdsw2:fab1"]] and
		([.invariants[] | select(.held)] | length) == 8 and
		.convergence_ns.p50 > 0 and .convergence_ns.max <= 60000' live.json
	dsf status "$LAB"
	dsf sim "$MINI" --drill drill.json --json >sim.json
	jq -e --slurpfile live live.json '.verdict == "held" and .faults == $live[0].faults' sim.json
}

@test "a random drill: the same seed gives the same faults, live and simulated" {
	run --separate-stderr dsf chaos --random --seed 7 --duration 150us --faults 4 --lab "$LAB" --json
	echo "$output"
	echo "$output" | jq -e '.verdict != "broken" and (.faults | length) == 4' >/dev/null
	echo "$output" >live.json
	dsf sim "$MINI" --drill "random --seed 7 --duration 150us --faults 4" --json >sim.json
	jq -e --slurpfile live live.json '.faults == $live[0].faults' sim.json
	dsf status "$LAB"
}

@test "people get a page" {
	run --separate-stderr dsf chaos drill.json --lab "$LAB"
	echo "$output"
	[[ "$output" == *"drill        bats, seed 3, 2 faults"* ]]
	[[ "$output" == *"verdict      "* ]]
}

@test "a link that a stranger takes down, and nobody heals, breaks it" {
	"$DSFEMU" chaos drill.json --lab "$LAB" --json >out.json &
	drill=$!
	wait_until 20 broken # it has begun
	dsf exec b0-z0-p1-rdsw3 --lab "$LAB" -- ip link set fab0 down
	wait_until 40 ended
	status=0
	wait $drill || status=$?
	dsf exec b0-z0-p1-rdsw3 --lab "$LAB" -- ip link set fab0 up
	cat out.json
	[ "$status" -eq 1 ]
	jq -e '.verdict != "held" and
		([.invariants[] | select(.held | not) | .name] | index("links") != null and
			index("reachability") != null and index("steady_after") != null) and
		([.invariants[] | select(.name == "links") | .detail | test("b0-z0-p1-rdsw3:fab0")] == [true])' out.json
	wait_until 20 dsf status "$LAB"
}

@test "Ctrl-C heals" {
	command -v socat >/dev/null || skip "no socat"
	"$DSFEMU" chaos drill.json --lab "$LAB" --json >out.json &
	drill=$!
	wait_until 20 broken
	kill -INT $drill
	wait_until 40 ended
	status=0
	wait $drill || status=$?
	[ "$status" -eq 130 ]
	jq -e '.verdict == "unknown" and .interrupted' out.json
	wait_until 10 healed
}

@test "SIGKILL heals, also when the file is gone" {
	command -v socat >/dev/null || skip "no socat"
	"$DSFEMU" chaos drill.json --lab "$LAB" --json >out.json &
	drill=$!
	wait_until 20 broken
	rm drill.json
	kill -KILL $drill
	wait $drill || true
	[ ! -s out.json ]
	wait_until 10 healed
}

@test "a tool that stands still is no reason to stay broken" {
	command -v socat >/dev/null || skip "no socat"
	"$DSFEMU" chaos drill.json --lab "$LAB" --json >out.json &
	drill=$!
	wait_until 20 broken
	kill -STOP $drill
	wait_until 20 healed
	kill -CONT $drill
	wait_until 40 ended
	wait $drill || true
	wait_until 10 healed
}

@test "a machine that is too slow: unknown, never broken" {
	dsf up "$MINI" --name "${LAB}s" --time-dilation 100
	sed -e 's/"hosts": [^}]*/"scope": "any"/; s/, *"scope"/, "scope"/; s/"64K", *$/"64K",/' drill.json >busy.json
	run --separate-stderr dsf chaos busy.json --lab "${LAB}s" --json
	dsf down "${LAB}s"
	echo "$output"
	[ "$status" -eq 1 ]
	echo "$output" | jq -e '.verdict == "unknown" and (.fidelity.valid | not)'
}

@test "bad files and wrong use" {
	printf '{"name": "x", "faults": [\n{"at": 0, "for": 1000, "kind": "link down", "target": "nowhere:fab0"}]}' >bad.json
	run --separate-stderr dsf chaos bad.json --lab "$LAB"
	[ "$status" -eq 2 ]
	[ -z "$output" ]
	[[ "$stderr" == *"bad.json:2: faults[0].target: "* ]]
	run dsf chaos absent.json --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf chaos --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf chaos drill.json --random --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf chaos drill.json --seed 1 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf chaos --random --faults 0 --lab "$LAB"
	[ "$status" -eq 2 ]
	dsf link down b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	run --separate-stderr dsf chaos drill.json --lab "$LAB" --json
	dsf link up b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	[ "$status" -eq 1 ]
	echo "$output" | jq -e '[.invariants[] | [.name, .held]] == [["steady_before", false]]'
	wait_until 10 dsf status "$LAB"
}
