#!/usr/bin/env bats
# FSDB live: sessions over the kernel's TCP inband, and which of them end when.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	LAB=$(lab_name fs)
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
	wait_until 20 dsf status "$LAB"
}

# sessions FILTER: the filter's value over the rows of all sessions
sessions()
{
	dsf show dsf subscription --lab "$LAB" --json | jq -c "$1"
}

# of NODE: sessions in which it takes part, as a filter
of()
{
	echo "select(.node == \"$1\" or .peer == \"$1\")"
}

flaps()
{
	sessions '[.[].flaps] | add'
}

# neighbors FILTER: how many rows of show ndp fulfil it
neighbors()
{
	dsf show ndp --lab "$LAB" --json | jq "[.[] | select($1)] | length"
}

same()
{
	[ "$("$1" "$2")" = "$3" ]
}

@test "all pairs of a plane have a session and know all neighbours" {
	[ "$(sessions 'map(.state) | unique')" = '["ESTABLISHED"]' ]
	[ "$(dsf status "$LAB" --json | jq -c .sessions.fsdb)" = '{"established":24,"expected":24}' ]
	[ "$(neighbors '.state == "reachable" and .scope == "local"')" = 16 ]
	[ "$(neighbors '.state == "reachable" and .scope == "remote"')" = 48 ]
}

@test "a port that is down keeps its own switch's entry only, and comes back everywhere" {
	dsf link down b0-z0-h0:gpu0p0 --lab "$LAB"
	wait_until 5 same neighbors '.state == "reachable" and .scope == "remote"' 45
	[ "$(neighbors '.state == "incomplete" and .scope == "local"')" = 1 ]
	dsf link up b0-z0-h0:gpu0p0 --lab "$LAB"
	wait_until 10 same neighbors '.state == "reachable" and .scope == "remote"' 48
}

@test "a fabric switch restarts: no session flaps" {
	before=$(flaps)
	dsf node restart b0-z0-p0-fdsw0 --lab "$LAB"
	wait_until 20 dsf status "$LAB"
	sleep 3
	[ "$(flaps)" = "$before" ]
}

@test "a leaf restarts: its own sessions flap, no other, and are back" {
	leaf=b0-z0-p0-rdsw2
	others=$(sessions "[.[] | select((.node == \"$leaf\" or .peer == \"$leaf\") | not) | .flaps] | add")
	dsf node restart $leaf --lab "$LAB"
	wait_until 20 dsf status "$LAB"
	[ "$(sessions '[.[] | select(.state == "ESTABLISHED")] | length')" = 24 ]
	[ "$(sessions "[.[] | $(of $leaf) | .flaps] | add")" -ge 3 ]
	[ "$(sessions "[.[] | select((.node == \"$leaf\" or .peer == \"$leaf\") | not) | .flaps] | add")" = "$others" ]
	[ "$(neighbors '.state == "reachable" and .scope == "remote"')" = 48 ]
}

@test "links of a leaf one by one: sessions end with the last, and return with the first" {
	leaf=b0-z0-p1-rdsw1
	before=$(flaps)
	dsf link down $leaf:fab0 --lab "$LAB"
	sleep 4
	[ "$(flaps)" = "$before" ]
	dsf link down $leaf:fab1 --lab "$LAB"
	# published: 15 s without a word
	wait_until 40 same sessions "[.[] | $(of $leaf) | select(.state == \"CONNECT\")] | length" 6
	[ "$(sessions '[.[] | select(.state == "ESTABLISHED")] | length')" = 18 ]
	[ "$(neighbors '.state == "reachable" and .scope == "remote"')" = 48 ] # held
	dsf link up $leaf:fab1 --lab "$LAB"
	wait_until 30 same sessions '[.[] | select(.state == "ESTABLISHED")] | length' 24
	dsf link up $leaf:fab0 --lab "$LAB"
}

# stale LEAF: system ports of a leaf that others call STALE
stale()
{
	dsf show systemport --lab "$LAB" --json |
		jq "[.[] | select((.port | startswith(\"$1:\")) and .liveness == \"STALE\")] | length"
}

@test "an agent is down for longer than the hold time: STALE and gone; back: LIVE" {
	leaf=b0-z0-p1-rdsw2
	dsf node freeze $leaf --lab "$LAB"
	# published: 15 s without a word, then 120 s of hold
	wait_until 60 same sessions "[.[] | select(.peer == \"$leaf\" and .state == \"CONNECT\")] | length" 3
	[ "$(neighbors ".state == \"reachable\" and .scope == \"remote\" and .switch == \"$leaf\"")" -gt 0 ]
	wait_until 200 same sessions "[.[] | select(.peer == \"$leaf\" and .liveness == \"STALE\")] | length" 3
	[ "$(neighbors ".state == \"reachable\" and .scope == \"remote\" and .switch == \"$leaf\"")" = 0 ]
	[ "$(sessions "[.[] | select(.peer != \"$leaf\" and .liveness == \"STALE\")] | length")" = 0 ]
	[ "$(stale $leaf)" -gt 0 ]
	dsf node start $leaf --lab "$LAB"
	wait_until 60 same sessions '[.[] | select(.state == "ESTABLISHED" and .liveness == "LIVE")] | length' 24
	wait_until 20 same neighbors '.state == "reachable" and .scope == "remote"' 48
	[ "$(stale $leaf)" = 0 ]
}

@test "a capture of sessions has no malformed packet" {
	command -v tshark >/dev/null || skip "no tshark"
	file=$BATS_TEST_TMPDIR/fsdb.pcapng
	lua=$SOURCE/scripts/wireshark/fsdb.lua
	dsf exec b0-z0-p0-rdsw1 --lab "$LAB" -- timeout 12 tshark -q -i inband0 -w "$file" &
	sleep 3
	dsf node restart b0-z0-p0-rdsw3 --lab "$LAB"
	wait
	# HELLO, SUBSCRIBE, SYNC, SYNCED, UPDATE, STATE, HEARTBEAT
	for type in 1 2 3 4 5 6 7; do
		echo "type $type"
		[ -n "$(tshark -X "lua_script:$lua" -r "$file" -Y "fsdb.type == $type" 2>/dev/null)" ]
	done
	[ -z "$(tshark -X "lua_script:$lua" -r "$file" -Y 'fsdb.malformed || _ws.malformed' 2>/dev/null)" ]
}
