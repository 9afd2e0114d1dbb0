#!/usr/bin/env bats
# External nodes: addresses, files and commands that aren't ours, and that nothing of them is left.

bats_require_minimum_version 1.5.0
load lib.bash

setup()
{
	need_root
	LAB=$(lab_name xt)
	EXTERNAL=$SOURCE/tests/topologies/external.json
	FOLDER=/run/dsfemu/$LAB/node/router
}

teardown()
{
	[ "$(id -u)" = 0 ] || return 0
	"$DSFEMU" down "$LAB" --kill --quiet || true
}

in_node()
{
	dsf exec "$1" --lab "$LAB" -- "${@:2}"
}

# The external lab with a command of its own: WORD...
lab_with()
{
	jq --argjson words "$(printf '%s\n' "$@" | jq -R . | jq -s .)" \
		'(.nodes[] | select(.name == "router")).command = $words' \
		"$EXTERNAL" >"$BATS_TEST_TMPDIR/with.json"
	echo "$BATS_TEST_TMPDIR/with.json"
}

node_field()
{
	dsf status "$LAB" --json | jq -r --arg field "$2" --arg node "$1" \
		'.nodes[] | select(.name == $node) | .[$field]'
}

field_is()
{
	[ "$(node_field "$1" "$2")" = "$3" ]
}

# Sleeps of the command: its own three.
sleeps()
{
	ip netns pids "$LAB-router" | xargs -r ps -o args= -p | grep -c '^sleep 1000[123]$'
}

sleeps_are()
{
	[ "$(sleeps)" = "$1" ]
}

@test "namespaces with addresses and forwarding; both ways of a ping" {
	dsf up "$EXTERNAL" --name "$LAB"
	dsf expand "$EXTERNAL" >"$BATS_TEST_TMPDIR/expanded.json"
	for node in router plain; do
		want=$(jq -r --arg port "$node:eth0" \
			'.links[] | select(.a == $port) | .address_a' "$BATS_TEST_TMPDIR/expanded.json")
		[ "$(address "$LAB" $node eth0)" = "$want" ]
		[ "$(in_node $node sysctl -n net.ipv6.conf.eth0.forwarding)" = 1 ]
		in_node h0 ping -6 -c 2 -i 0.2 "$want"
	done
	in_node plain ping -6 -c 2 -i 0.2 "$(address "$LAB" h0 gpu0p0)"
	# A command brings its own routes.
	in_node plain ip -6 route show | grep -q '^fd5f::/24 via fd5f:0:1:100::1 dev eth0'
	[ "$(in_node router ip -6 route show | grep -c via)" = 1 ] # that of start.sh
	dsf status "$LAB" --json | jq -e '.state == "ready" and all(.links[]; .state == "up")'
	[ "$(node_field plain state)" = external ]
	[ "$(node_field plain pid)" = null ]
}

@test "the command: namespace, folder, files, environment, log" {
	dsf up "$EXTERNAL" --name "$LAB"
	pid=$(node_field router pid)
	[ "$(node_field router state)" = running ]
	[ "$(readlink "/proc/$pid/cwd")" = "$FOLDER" ]
	[ "$(stat -Lc %i "/proc/$pid/ns/net")" = "$(stat -Lc %i "/run/netns/$LAB-router")" ]
	[ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ]
	[ "$(ps -o pgid= -p "$pid" | tr -d ' ')" = "$pid" ]
	tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "DSFEMU_LAB=$LAB"
	tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "DSFEMU_NODE=router"
	[ "$(awk '/Max open files/ { print $4 }' "/proc/$pid/limits")" -le 1024 ]
	[ "$(stat -c %a "$FOLDER/start.sh")" = 644 ]
	[ "$(head -n 1 "$FOLDER/start.sh")" = "ip -6 route replace fd5f::/24 via fd5f:0:1::1" ]
	[ "$(cat "$FOLDER/text")" = "no line feed at the end" ]
	[ "$(tail -c 1 "$FOLDER/text")" = d ]
	[ -d "/run/dsfemu/$LAB/node/plain" ]
	grep -qx "says two words in $FOLDER" "/run/dsfemu/$LAB/log/router.log"
	grep -qx complains "/run/dsfemu/$LAB/log/router.log"
	[ "$(sleeps)" = 3 ]
	dsf down "$LAB"
	nothing_left "$LAB"
}

@test "stop, start, restart, kill, freeze: all that the command has started" {
	dsf up "$EXTERNAL" --name "$LAB"
	# Who works in the namespace isn't the command's.
	"$DSFEMU" exec router --lab "$LAB" -- sleep 1000 3>&- &
	mine=$!
	dsf node stop router --lab "$LAB"
	[ "$(sleeps)" = 0 ]
	kill -0 $mine
	[ "$(node_field router state)" = stopped ]
	run dsf status "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"stopped, signal 15"* ]]
	# The box is still there.
	in_node h0 ping -6 -c 2 -i 0.2 "$(address "$LAB" router eth0)"
	dsf status "$LAB" --json | jq -e '.state == "degraded" and all(.links[]; .state == "up")'
	dsf node start router --lab "$LAB"
	dsf status "$LAB"
	[ "$(sleeps)" = 3 ]

	before=$(node_field router pid)
	dsf node restart router --lab "$LAB"
	[ "$(node_field router pid)" != "$before" ]
	[ "$(sleeps)" = 3 ]
	[ "$(wc -l <"$FOLDER/starts")" = 3 ]

	dsf node kill router --lab "$LAB"
	[ "$(sleeps)" = 0 ]
	[ "$(node_field router state)" = exited ]
	[ "$(node_field router exit_code)" = 137 ]
	dsf node start router --lab "$LAB"
	dsf status "$LAB"

	dsf node freeze router --lab "$LAB"
	[ "$(node_field router state)" = frozen ]
	[ "$(ip netns pids "$LAB-router" | xargs -r ps -o stat=,args= -p | grep '^T.*sleep 1000' -c)" = 3 ]
	run dsf status "$LAB"
	[ "$status" -eq 1 ]
	dsf node start router --lab "$LAB"
	dsf status "$LAB"
	[ "$(ip netns pids "$LAB-router" | xargs -r ps -o stat=,args= -p | grep '^T' -c)" = 0 ]
	dsf node freeze router --lab "$LAB"
	dsf node stop router --lab "$LAB"
	[ "$(sleeps)" = 0 ]
	dsf node start router --lab "$LAB"
	dsf node stop router --for 200msw --lab "$LAB"
	wait_until 10 field_is router state running
	wait_until 10 dsf status "$LAB"
	kill -0 $mine
	run dsf node stop plain --lab "$LAB"
	[ "$status" -eq 2 ]
	[[ "$output" == *"without a command has no process"* ]]
	dsf down "$LAB"
	nothing_left "$LAB"
}

@test "a command that ends degrades the lab, with its code and what it said last" {
	dsf up "$(lab_with sh -c 'mkfifo go; setsid -f sleep 10001; read word <go; echo enough >&2; exit 3')" --name "$LAB"
	dsf status "$LAB"
	echo >"$FOLDER/go"
	wait_until 10 field_is router state exited
	wait_until 10 sleeps_are 0
	run dsf status "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"exited, code 3: enough"* ]]
	dsf status "$LAB" --json | jq -e '.state == "degraded" and any(.nodes[]; .name == "router" and
		.pid == null and .exit_code == 3 and .why == "code 3: enough")'
	rm "$FOLDER/go"
	dsf node start router --lab "$LAB"
	dsf status "$LAB"
}

@test "what a command said last is text in every answer, whatever its bytes were" {
	run dsf up "$(lab_with sh -c 'printf "\\377\\033[31m\\302\\233\\303\\244\\303\\n"; exit 3')" --name "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"code 3: ??[31m??ä?" ]]
	dsf up "$(lab_with sh -c 'printf "\\377\\033[31m\\302\\233\\303\\244\\303\\n"; sleep 1; exit 3')" --name "$LAB"
	wait_until 10 field_is router state exited
	dsf status "$LAB" --json | iconv -f UTF-8 -t UTF-8 >"$BATS_TEST_TMPDIR/status"
	jq -e 'any(.nodes[]; .why == "code 3: ??[31m??ä?")' "$BATS_TEST_TMPDIR/status"
}

@test "a command killed from outside: what it left behind ends too" {
	dsf up "$EXTERNAL" --name "$LAB"
	kill -9 "$(node_pid "$LAB" router)"
	wait_until 10 field_is router state exited
	[ "$(node_field router why)" = "signal 9: complains" ]
	wait_until 10 sleeps_are 0
	dsf node restart router --lab "$LAB"
	dsf status "$LAB"
	[ "$(sleeps)" = 3 ]
}

@test "one that doesn't heed TERM is killed, at stop and at down" {
	dsf up "$(lab_with sh -c 'trap "" TERM; setsid -f sleep 10001; while :; do sleep 1; done')" --name "$LAB"
	dsf node stop router --lab "$LAB"
	[ "$(node_field router exit_code)" = 137 ]
	[ "$(sleeps)" = 0 ]
	dsf node start router --lab "$LAB"
	dsf down "$LAB"
	nothing_left "$LAB"
}

@test "up fails, and says why, when a command can't run" {
	run dsf up "$(lab_with no-such-router -f)" --name "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"router: its command ended with code 127: no-such-router: "*"install it"* ]]
	nothing_left "$LAB"
	run dsf up "$(lab_with ./start.sh)" --name "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"code 126: ./start.sh: Permission denied"* ]]
	run dsf up "$(lab_with sh -c 'echo first; echo line 3: wrong >&2; exit 1')" --name "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"router: its command ended with code 1: line 3: wrong"* ]]
	run dsf up "$(lab_with setsid -f sleep 10001)" --name "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"has to stay in the foreground"* ]]
	nothing_left "$LAB"
}

@test "SIGKILL of the supervisor, of the command, of all: down and the next up leave nothing" {
	dsf up "$EXTERNAL" --name "$LAB"
	kill -9 "$(supervisor_pid "$LAB")"
	dsf down "$LAB"
	nothing_left "$LAB"

	dsf up "$EXTERNAL" --name "$LAB"
	kill -9 "$(supervisor_pid "$LAB")"
	wait_until 10 dsf up "$EXTERNAL" --name "$LAB"
	[ "$(sleeps)" = 3 ]
	kill -9 "$(node_pid "$LAB" router)"
	dsf down "$LAB"
	nothing_left "$LAB"

	dsf up "$EXTERNAL" --name "$LAB"
	# shellcheck disable=SC2046
	kill -9 $(marked "$LAB")
	dsf down "$LAB"
	nothing_left "$LAB"
}

@test "what a command leaves in its folder goes, and nothing outside" {
	keep=$BATS_TEST_TMPDIR/keep
	mkdir "$keep"
	touch "$keep/file"
	dsf up "$EXTERNAL" --name "$LAB"
	mkdir -p "$FOLDER/a/b/c/.d"
	touch "$FOLDER/a/b/c/.d/e" "$FOLDER/.hidden"
	mkfifo "$FOLDER/a/fifo"
	ln -s "$keep" "$FOLDER/a/link"
	ln -s "$keep/file" "$FOLDER/link"
	dsf down "$LAB"
	nothing_left "$LAB"
	[ -e "$keep/file" ]
}

@test "one that talks without end keeps nobody waiting and fills nothing" {
	dsf up "$(lab_with yes)" --name "$LAB"
	dsf status "$LAB"
	in_node h0 ping -6 -c 2 -i 0.2 "$(address "$LAB" plain eth0)"
	[ "$(du -sb "/run/dsfemu/$LAB/log" | cut -f1)" -lt 1000000 ]
	dsf down "$LAB"
	nothing_left "$LAB"
}

@test "the simulator runs without them, and says so" {
	run --separate-stderr dsf sim "$EXTERNAL" --json
	[ "$status" -eq 0 ]
	echo "$output" | jq -e .ready
	[[ "$stderr" == *"router: an external node says nothing in the simulator"* ]]
}
