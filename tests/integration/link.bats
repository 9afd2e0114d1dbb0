#!/usr/bin/env bats
# Links: down, up, by hand, impaired, reset.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	LAB=$(lab_name li)
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
	[ "$status" -eq 1 ]
	run dsf link down 'x"y' --lab "$LAB"
	[ "$status" -eq 1 ]
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
	dsf link down b0-z0-p0-rdsw0:fab0 --for 1sw --lab "$LAB"
	dsf link impair b0-z0-p0-rdsw0:fab0 --delay 1us --for 1sw --lab "$LAB"
	dsf link impair b0-z0-p0-rdsw0:fab0 --delay 2us --loss 1ppm --for 2sw --lab "$LAB"
	carrier b0-z0-p0-rdsw0 fab0 0
	asked | jq -e '.result.links == [{"link": "b0-z0-p0-rdsw0:fab0", "down": true, "impaired": true}]'
	wait_until 3 carrier b0-z0-p0-rdsw0 fab0 1
	# The second impairment took the delay over from the first, which must not end it.
	asked | jq -e '.result.links == [{"link": "b0-z0-p0-rdsw0:fab0", "down": false, "impaired": true}]'
	wait_until 4 sh -c "printf '{\"op\":\"asked\"}\n' |
		timeout 5 socat -t 2 - UNIX-CONNECT:/run/dsfemu/$LAB/control | jq -e '.result.links == []'"
	# What is asked for good before the time is over stays.
	dsf link down b0-z0-p0-rdsw0:fab0 --for 500msw --lab "$LAB"
	dsf link down b0-z0-p0-rdsw0:fab0 --lab "$LAB"
	sleep 1
	carrier b0-z0-p0-rdsw0 fab0 0
}

@test "flap goes down and up, and ends up" {
	dsf link flap b0-z0-p0-rdsw0:fab0 --count 2 --period 1sw --lab "$LAB"
	for state in 0 1 0 1; do
		wait_until 2 carrier b0-z0-p0-rdsw0 fab0 $state
	done
	sleep 1
	carrier b0-z0-p0-rdsw0 fab0 1
	run dsf link flap b0-z0-p0-rdsw0:fab0 --count 0 --lab "$LAB"
	[ "$status" -eq 1 ]
	run dsf link down b0-z0-p0-rdsw0:fab0 --count 2 --lab "$LAB"
	[ "$status" -eq 2 ]
	run dsf link up b0-z0-p0-rdsw0:fab0 --for 1sw --lab "$LAB"
	[ "$status" -eq 2 ]
}

@test "a node that is frozen, stopped or killed for a time is back after it" {
	for action in freeze stop kill; do
		dsf node $action b0-z0-p0-fdsw0 --for 500msw --lab "$LAB"
		run dsf status "$LAB" --json
		echo "$output" | jq -e '.nodes[] | select(.name == "b0-z0-p0-fdsw0") | .state != "ready"'
		wait_until 10 sh -c "timeout 60 '$DSFEMU' status '$LAB' --json | jq -e '
			.nodes[] | select(.name == \"b0-z0-p0-fdsw0\") | .state == \"ready\"'"
	done
}
