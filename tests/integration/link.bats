#!/usr/bin/env bats
# Links: down, up, by hand, impaired, reset.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	LAB=$(lab_name li)
	export LAB
	# One link varies by its file already.
	dsf expand "$MINI" | jq '(.links[] | select(.a == "b0-z0-p1-rdsw2:fab1") | .jitter) = 40' \
		>"$BATS_FILE_TMPDIR/lab.json"
	dsf up "$BATS_FILE_TMPDIR/lab.json" --name "$LAB"
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
	[ -z "${listener:-}" ] || kill $listener || true
	[ -z "${reader:-}" ] || kill $reader || true
	for link in b0-z0-p0-rdsw0:fab0 b0-z0-h0:gpu0p0; do
		dsf link reset $link --lab "$LAB" || true
	done
	dsf exec b0-z0-h0 --lab "$LAB" -- ip link set gpu0p0 up || true
	wait_until 10 dsf status "$LAB"
}

carrier()
{
	[ "$(dsf exec "$1" --lab "$LAB" -- cat "/sys/class/net/$2/carrier" 2>/dev/null || echo 0)" = "$3" ]
}

pings()
{
	dsf exec b0-z0-h0 --lab "$LAB" -- ping -6 -c "${2:-1}" -i 0.05 -W 2 "$1"
}

@test "down takes the carrier of both ends, up gives it back; either end names it" {
	dsf link down b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	wait_until 5 carrier b0-z0-p0-rdsw0 fab0 0
	wait_until 5 carrier b0-z0-p0-fdsw0 fab0 0
	run --separate-stderr dsf status "$LAB" --json
	[ "$status" -eq 1 ]
	echo "$output" | jq -e '.state == "degraded" and
		[.links[] | select(.state != "up") | .a] == ["b0-z0-p0-rdsw0:fab0"]'
	dsf link up b0-z0-p0-fdsw0:fab0 --lab "$LAB"
	wait_until 5 carrier b0-z0-p0-rdsw0 fab0 1
	wait_until 5 carrier b0-z0-p0-fdsw0 fab0 1
	wait_until 10 dsf status "$LAB"
}

@test "a host keeps addresses and routes while its link is down" {
	dsf exec b0-z0-h0 --lab "$LAB" -- ip -6 addr show dev gpu0p0 | grep -v valid_lft >"$BATS_TEST_TMPDIR/before"
	dsf link down b0-z0-h0:gpu0p0 --lab "$LAB"
	wait_until 5 carrier b0-z0-h0 gpu0p0 0
	dsf link up b0-z0-h0:gpu0p0 --lab "$LAB"
	wait_until 5 carrier b0-z0-h0 gpu0p0 1
	dsf exec b0-z0-h0 --lab "$LAB" -- ip -6 addr show dev gpu0p0 | grep -v valid_lft |
		diff "$BATS_TEST_TMPDIR/before" -
	wait_until 10 pings "$(address "$LAB" b0-z0-h3 gpu0p0)"
}

@test "ip link set down and up by hand: a host's routes and neighbours come back" {
	target=$(address "$LAB" b0-z0-h3 gpu0p0)
	wait_until 10 pings "$target"
	dsf exec b0-z0-h0 --lab "$LAB" -- ip link set gpu0p0 down
	wait_until 5 carrier b0-z0-p0-rdsw0 eth0 0
	run dsf status "$LAB"
	[ "$status" -eq 1 ]
	dsf exec b0-z0-h0 --lab "$LAB" -- ip link set gpu0p0 up
	wait_until 10 pings "$target"
	dsf exec b0-z0-h0 --lab "$LAB" -- ip -6 neigh show nud permanent dev gpu0p0 | grep -q lladdr
	dsf exec b0-z0-h0 --lab "$LAB" -- ip -6 rule show | grep -c "lookup 1000" | grep -qx 1
	wait_until 10 dsf status "$LAB"
}

@test "impair: total loss stops traffic, reset lets it through; knobs are independent" {
	target=$(address "$LAB" b0-z0-h0 gpu0p0)
	back=$(address "$LAB" b0-z0-p0-rdsw0 inband0 || true)
	gateway=$(dsf exec b0-z0-h0 --lab "$LAB" -- ip -6 neigh show nud permanent dev gpu0p0 | cut -d' ' -f1)
	[ -n "$target$back" ]
	pings "$(address "$LAB" b0-z0-h3 gpu0p0)"
	dsf link impair b0-z0-h0:gpu0p0 --loss 100% --lab "$LAB"
	run pings "$(address "$LAB" b0-z0-h3 gpu0p0)"
	[ "$status" -ne 0 ]
	dsf link impair b0-z0-h0:gpu0p0 --delay 1us --lab "$LAB" # loss stays
	run pings "$(address "$LAB" b0-z0-h3 gpu0p0)"
	[ "$status" -ne 0 ]
	dsf link impair b0-z0-h0:gpu0p0 --loss 0% --lab "$LAB"
	pings "$(address "$LAB" b0-z0-h3 gpu0p0)"
	dsf link reset b0-z0-h0:gpu0p0 --lab "$LAB"
	pings "$(address "$LAB" b0-z0-h3 gpu0p0)"
	[ -n "$gateway" ]
}

@test "one-way silence is noticed by both ends, and heals" {
	dsf link impair b0-z0-p0-rdsw0:fab0 --silent --lab "$LAB"
	wait_until 10 sh -c "! timeout 60 '$DSFEMU' status '$LAB'"
	wait_until 10 sh -c "timeout 60 '$DSFEMU' status '$LAB' --json | jq -e '
		[.links[] | select(.state != \"up\") | .a] == [\"b0-z0-p0-rdsw0:fab0\"]'"
	carrier b0-z0-p0-rdsw0 fab0 1
	carrier b0-z0-p0-fdsw0 fab0 1
	dsf link reset b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	wait_until 20 dsf status "$LAB"
}

@test "what is asked of a link survives its node" {
	dsf link down b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	dsf node kill b0-z0-p0-fdsw0 --lab "$LAB"
	# It can't become ready while its link is down, so only its start is waited for.
	dsf node start b0-z0-p0-fdsw0 --lab "$LAB" &
	starter=$!
	wait_until 10 sh -c "timeout 60 '$DSFEMU' status '$LAB' --json | jq -e '
		[.links[] | select(.state != \"up\") | .a] == [\"b0-z0-p0-rdsw0:fab0\"]'"
	carrier b0-z0-p0-rdsw0 fab0 0
	dsf link up b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	wait $starter
	wait_until 10 dsf status "$LAB"
}

@test "wrong use" {
	run dsf link down b0-z0-p0-rdsw0:fab99 --lab "$LAB"
	[ "$status" -eq 2 ]
	[ "$output" = "dsfemu: b0-z0-p0-rdsw0:fab99: no such link" ]
	run dsf link down 'x"y' --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link sideways b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link impair b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link impair b0-z0-p0-rdsw0:fab0 --loss 101% --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link impair b0-z0-p0-rdsw0:fab0 --delay 5 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link down b0-z0-p0-rdsw0:fab0 --loss 1% --lab "$LAB"
	[ "$status" -eq 2 ]
	dsf status "$LAB"
}

@test "the control socket survives clients that send nonsense or go away" {
	command -v socat >/dev/null || skip "no socat"
	socket=/run/dsfemu/$LAB/control
	for line in '' '{' '[]' '{"op":1}' '{"op":"status"' '{"op":"nodes","request":{"op":"view"' \
		'{"op":"node","node":"x","request":{}}' '{"op":"node","node":"b0-z0-h0","request":5}' \
		'{"op":"link","link":"b0-z0-p0-rdsw0:fab0","action":"impair","set":{"loss_ppm":-1}}' \
		'{"op":"link","link":"b0-z0-p0-rdsw0:fab0","action":"impair","set":{"loss_ppm":1e3}}' \
		'{"op":"process","node":"b0-z0-h0","action":"dance"}'; do
		answer=$(printf '%s\n' "$line" | timeout 5 socat -t 2 - "UNIX-CONNECT:$socket")
		echo "$line -> $answer"
		[[ "$answer" == *'"error"'* ]]
	done
	head -c 20000000 /dev/zero | tr '\0' 'x' | timeout 10 socat -u - "UNIX-CONNECT:$socket" || true
	for i in $(seq 80); do
		printf '{"op":"status"}\n' | timeout 0.02 socat -u - "UNIX-CONNECT:$socket" &
	done
	wait
	wait_until 10 dsf status "$LAB"
	# Several requests at once, answered by id.
	printf '{"id":1,"op":"lab"}\n{"id":"two","op":"lab"}\n' |
		timeout 5 socat -t 2 - "UNIX-CONNECT:$socket" | jq -es '[.[].id] == [1, "two"]'
}

asked()
{
	printf '{"op":"asked"}\n' | timeout 5 socat -t 2 - "UNIX-CONNECT:/run/dsfemu/$LAB/control"
}

@test "--for heals by itself; the last word on a knob decides" {
	command -v socat >/dev/null || skip "no socat"
	dsf link down b0-z0-p0-rdsw0:fab0 --for 2sw --lab "$LAB"
	dsf link impair b0-z0-p0-rdsw0:fab0 --delay 1us --for 2sw --lab "$LAB"
	dsf link impair b0-z0-p0-rdsw0:fab0 --delay 2us --loss 1ppm --for 5sw --lab "$LAB"
	carrier b0-z0-p0-rdsw0 fab0 0
	asked | jq -e '.result.links == [{"link": "b0-z0-p0-rdsw0:fab0", "down": true, "impaired": true, "drained": false}]'
	wait_until 10 carrier b0-z0-p0-rdsw0 fab0 1
	# The second impairment took the delay over from the first, which must not end it.
	asked | jq -e '.result.links == [{"link": "b0-z0-p0-rdsw0:fab0", "down": false, "impaired": true, "drained": false}]'
	wait_until 10 sh -c "printf '{\"op\":\"asked\"}\n' |
		timeout 5 socat -t 2 - UNIX-CONNECT:/run/dsfemu/$LAB/control | jq -e '.result.links == []'"
	# What is asked for good before the time is over stays.
	dsf link down b0-z0-p0-rdsw0:fab0 --for 500msw --lab "$LAB"
	dsf link down b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	sleep 1
	carrier b0-z0-p0-rdsw0 fab0 0
}

@test "flap goes down and up, and ends up" {
	dsf link flap b0-z0-p0-rdsw0:fab0 --count 2 --period 2sw --lab "$LAB"
	for state in 0 1 0 1; do
		wait_until 5 carrier b0-z0-p0-rdsw0 fab0 $state
	done
	sleep 2
	carrier b0-z0-p0-rdsw0 fab0 1
	run dsf link flap b0-z0-p0-rdsw0:fab0 --count 0 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link down b0-z0-p0-rdsw0:fab0 --count 2 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link up b0-z0-p0-rdsw0:fab0 --for 1sw --lab "$LAB"
	[ "$status" -eq 2 ]
}

@test "a node that is frozen, stopped or killed for a time is back after it" {
	for action in freeze stop kill; do
		dsf node $action b0-z0-p0-fdsw0 --for 2sw --lab "$LAB"
		run dsf status "$LAB" --json
		echo "$output" | jq -e '.nodes[] | select(.name == "b0-z0-p0-fdsw0") | .state != "ready"'
		wait_until 10 sh -c "timeout 60 '$DSFEMU' status '$LAB' --json | jq -e '
			.nodes[] | select(.name == \"b0-z0-p0-fdsw0\") | .state == \"ready\"'"
	done
}

# Events of the lab from here on, in events.json; stopped by stop_listening.
listen()
{
	"$DSFEMU" events "$LAB" --json >"${1:-events.json}" 2>events.err 3>&- &
	listener=$!
	wait_until 5 grep -q listening events.err
}

stop_listening()
{
	kill $listener
	wait $listener || true
	listener=
}

heard()
{
	jq -es "$1" events.json
}

@test "events: what is asked, what both ends see, who reaches whom by what, in order" {
	cd "$BATS_TEST_TMPDIR"
	listen
	dsf link down b0-z0-p0-fdsw0:fab0 --lab "$LAB"
	wait_until 10 heard '[.[] | select(.event == "reachability") | .node] | unique | length == 5'
	# A link that is down costs its RDSW no destination; its FDSW loses one, and tells the others.
	heard '[.[] | select(.event == "reachability")] | map({key: .node, value: .}) | from_entries |
		(.["b0-z0-p0-rdsw0"] | .changed == 3 and .lost == 0 and .reached == 3) and
		(.["b0-z0-p0-fdsw0"] | .changed == 1 and .lost == 1 and .reached == 3) and
		(.["b0-z0-p0-rdsw3"] | .changed == 1 and .lost == 0 and .reached == 3)'
	heard '.[0] | .event == "asked" and .link == "b0-z0-p0-rdsw0:fab0" and .down'
	heard '[.[] | select(.event == "port_down") | [.node, .port]] | sort ==
		[["b0-z0-p0-fdsw0", "fab0"], ["b0-z0-p0-rdsw0", "fab0"]]'
	heard '(map(select(.event == "port_down" and .node == "b0-z0-p0-fdsw0"))[0]) as $down |
		all(.[] | select(.event == "reachability" and (.node | test("rdsw[1-3]")));
			.at_ns > $down.at_ns and .wall_us >= $down.wall_us)'
	dsf link up b0-z0-p0-fdsw0:fab0 --lab "$LAB"
	wait_until 10 heard '[.[] | select(.event == "link_up") | .node] | length == 2'
	dsf node kill b0-z0-p0-fdsw1 --lab "$LAB"
	dsf node start b0-z0-p0-fdsw1 --lab "$LAB"
	wait_until 10 heard 'map(select(.node == "b0-z0-p0-fdsw1") | .event) |
		[index("died", "started", "ready")] | all(. != null) and . == sort'
	stop_listening
	heard 'all(.[]; has("node") and .wall_us > 1e15 and .at_ns > 0)'
}

@test "events: for people they are sentences" {
	cd "$BATS_TEST_TMPDIR"
	"$DSFEMU" events "$LAB" >events.txt 2>events.err 3>&- &
	wait_until 5 grep -q listening events.err
	dsf link impair b0-z0-p0-rdsw0:fab0 --loss 1% --delay 10us --lab "$LAB"
	dsf link down b0-z0-p0-fdsw0:fab1 --lab "$LAB"
	wait_until 10 grep -Eq 'b0-z0-p0-rdsw1 +not ready$' events.txt
	dsf link reset b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	dsf link reset b0-z0-p0-rdsw1:fab0 --lab "$LAB"
	wait_until 10 grep -Eq 'b0-z0-p0-rdsw1 +ready$' events.txt
	kill $!
	grep -F 'asked link b0-z0-p0-rdsw0:fab0, not down, not drained, impairment loss 1 %, delay 10 us' events.txt
	grep -F 'asked link b0-z0-p0-rdsw1:fab0, down, not drained' events.txt
	grep -E 'b0-z0-p0-rdsw1 +port_down port fab0$' events.txt
}

@test "events: who doesn't read is told what was missed, and nobody waits for it" {
	command -v socat >/dev/null || skip "no socat"
	cd "$BATS_TEST_TMPDIR"
	mkfifo pipe
	exec 9<>pipe
	listen pipe
	for i in $(seq 8000); do
		echo '{"op":"link","link":"b0-z0-p0-rdsw0:fab0","action":"impair","set":{"delay_ns":'$i'}}'
	done | timeout 30 socat -t 5 - "UNIX-CONNECT:/run/dsfemu/$LAB/control" >answers.json
	[ "$(wc -l <answers.json)" -eq 8000 ]
	dsf status "$LAB"
	cat <&9 >events.json 3>&- &
	reader=$!
	# As soon as there is room for it, though nothing else happens.
	wait_until 20 heard 'any(.[]; .event == "missed")'
	dsf link reset b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	wait_until 10 heard "(map(select(.event == \"asked\")) | length) +
		(map(select(.event == \"missed\").lines) | add) == 8001"
	stop_listening
	exec 9<&-
	heard 'map(select(.event == "missed")) | length == 1 and .[0].lines > 1000'
	heard 'map(select(.event == "asked")) | (.[0].impairment.delay_ns == 1) and (.[-1] | has("impairment") | not)'
}

# impairment NODE PORT: what impairs the port, as its node has it
impairment()
{
	dsf show port --node "$1" --lab "$LAB" --json | jq -c ".[] | select(.port == \"$2\").impairment"
}

@test "an impairment is shown, keeps what the file says, and a reset goes back to that" {
	[ "$(impairment b0-z0-p1-rdsw2 fab1)" = '{"jitter_ns":40}' ]
	[ "$(impairment b0-z0-p1-rdsw2 fab0)" = null ]
	dsf status "$LAB" --json | jq -e 'all(.links[]; has("impairment") | not)'
	dsf link impair b0-z0-p1-rdsw2:fab1 --delay 70ns --lab "$LAB"
	[ "$(impairment b0-z0-p1-rdsw2 fab1)" = '{"delay_ns":70,"jitter_ns":40}' ]
	[ "$(impairment b0-z0-p1-fdsw1 fab2)" = '{"delay_ns":70,"jitter_ns":40}' ]
	dsf link impair b0-z0-p1-rdsw2:fab1 --jitter 0ns --reorder 5ppm --lab "$LAB"
	[ "$(impairment b0-z0-p1-rdsw2 fab1)" = '{"reorder_ppm":5,"delay_ns":70}' ]
	dsf status "$LAB" --json | jq -e '[.links[] | select(has("impairment")) | [.a, .impairment]] ==
		[["b0-z0-p1-rdsw2:fab1", {"reorder_ppm": 5, "delay_ns": 70, "jitter_ns": 0}]]'
	dsf status "$LAB" | grep -F 'reorder 0.0005 %, delay 70 ns, jitter 0 ns'
	dsf show port --node b0-z0-p1-rdsw2 --lab "$LAB" | grep -F 'reorder 0.0005 %, delay 70 ns'
	# A node that starts anew is told.
	dsf node restart b0-z0-p1-fdsw1 --lab "$LAB"
	[ "$(impairment b0-z0-p1-fdsw1 fab2)" = '{"reorder_ppm":5,"delay_ns":70}' ]
	dsf link reset b0-z0-p1-rdsw2:fab1 --lab "$LAB"
	[ "$(impairment b0-z0-p1-rdsw2 fab1)" = '{"jitter_ns":40}' ]
	[ "$(impairment b0-z0-p1-fdsw1 fab2)" = '{"jitter_ns":40}' ]
	dsf status "$LAB" --json | jq -e 'all(.links[]; has("impairment") | not)'
}

# Datagrams that h3's kernel has got for a port nobody listens on.
refused()
{
	dsf exec b0-z0-h3 --lab "$LAB" -- awk '$1 == "Udp6NoPorts" { print $2 }' /proc/net/snmp6
}

# Sends 20 datagrams of h0's kernel to h3.
send()
{
	count=$(refused)
	dsf exec b0-z0-h0 --lab "$LAB" -- bash -c \
		"for i in {1..20}; do echo x >/dev/udp/$target/9; done 2>/dev/null" || true
}

# How many of them came until now.
came()
{
	echo $(($(refused) - count))
}

all_came()
{
	[ "$(came)" -eq 20 ]
}

send_all()
{
	send
	wait_until 10 all_came
}

@test "what a host's kernel sends is impaired too, one way or both" {
	target=$(address "$LAB" b0-z0-h3 gpu0p0)
	pings "$target"
	send_all
	before=$(dsf show counters --node b0-z0-p0-rdsw0 --lab "$LAB" --json | jq '.[0].impaired_drops')
	dsf link impair b0-z0-h0:gpu0p0 --loss 100% --lab "$LAB"
	send
	sleep 1
	[ "$(came)" -eq 0 ]
	after=$(dsf show counters --node b0-z0-p0-rdsw0 --lab "$LAB" --json | jq '.[0].impaired_drops')
	[ "$after" -ge $((before + 20)) ]
	dsf link reset b0-z0-h0:gpu0p0 --lab "$LAB"
	dsf link impair b0-z0-h0:gpu0p0 --silent --lab "$LAB" # what leaves the host
	send
	sleep 1
	[ "$(came)" -eq 0 ]
	dsf link reset b0-z0-h0:gpu0p0 --lab "$LAB"
	dsf link impair b0-z0-h0:gpu0p0 --loss 40% --lab "$LAB"
	dsf node restart b0-z0-p0-rdsw0 --lab "$LAB" # it is told again
	send
	sleep 1
	[ "$(came)" -lt 20 ]
	dsf link reset b0-z0-h0:gpu0p0 --lab "$LAB"
	dsf link impair b0-z0-p0-rdsw0:eth0 --silent --lab "$LAB" # what leaves the switch
	send_all
	dsf link reset b0-z0-h0:gpu0p0 --lab "$LAB"
	run -0 dsf run write --hosts b0-z0-h0:gpu0,b0-z0-h3:gpu0 --size 64K --lab "$LAB" --json
}

@test "a delay of a host's link is there on both ways, for its kernel and for RDMA" {
	target=$(address "$LAB" b0-z0-h3 gpu0p0)
	rtt() { dsf exec b0-z0-h0 --lab "$LAB" -- ping -q -c 10 -i 0.02 "$target" | sed -n 's|^rtt .* = \([0-9]*\)\..*|\1|p'; }
	pings "$target"
	before=$(rtt)
	dsf link impair b0-z0-h0:gpu0p0 --delay 500msw --lab "$LAB"
	after=$(rtt) # at least both delays, however slow the machine is
	[ $((after - before)) -ge 900 ] || [ "$after" -ge 1000 ]
	dsf link reset b0-z0-h0:gpu0p0 --lab "$LAB"
}
