#!/usr/bin/env bats
# A routed Clos live: routers speak BGP over kernel TCP, the kernel's IPv6 and RDMA cross it, also
# without a link.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	export LAB=clos$$ FILE="$BATS_FILE_TMPDIR/clos.json"
	# Two zones of clos.json: 4 leaves, 4 fabric and 2 spine switches, 4 hosts with 2 GPUs.
	jq '.buildings[0].sdsw = 2 | .buildings[0].zones |= [.[0:2][] | .scaling_units = 1 | .fdsw = 2]
		| .link_defaults.fabric.rate = "445G" | .time_dilation = 20000' \
		"$DSF_SOURCE/topologies/clos.json" >"$FILE"
	timeout 120 "$DSFEMU" up "$FILE" --name "$LAB" --quiet
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

# inside NODE COMMAND...
inside()
{
	local node=$1
	shift
	timeout 120 "$DSFEMU" exec --lab "$LAB" "$node" -- "$@"
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

# Routes without what a driver may order as it likes.
routes()
{
	jq -S 'map({node, prefix, origin, port, next_hops: (.next_hops | sort), unusable}) | sort'
}

as_simulated()
{
	[ "$(lab show route --json | routes)" = \
		"$("$DSFEMU" sim "/run/dsfemu/$LAB/lab.json" --show route --json | routes)" ]
}

gpu_addresses()
{
	"$DSFEMU" expand "$FILE" | jq -r '.links[] | select(.kind == "gpu") | .address_a'
}

ping_all()
{
	local host
	for host in b0-z0-h0 b0-z0-h1 b0-z1-h0 b0-z1-h1; do
		# shellcheck disable=SC2016
		inside "$host" sh -c 'for a; do ping -q -n -c 1 -W 10 "$a" >/dev/null || echo "$a"; done' \
			- $(gpu_addresses) >>"$BATS_TEST_TMPDIR/lost"
	done
	[ ! -s "$BATS_TEST_TMPDIR/lost" ] || {
		cat "$BATS_TEST_TMPDIR/lost"
		return 1
	}
}

# usable SWITCH PREFIX COUNT: so many next hops lead there
usable()
{
	check "$(lab show route --node "$1" --json)" \
		"[.[] | select(.prefix == \"$2\") | .usable] == [$3]"
}

@test "every session stands; routes are those of the simulator, next hop by next hop" {
	check "$(lab show bgp summary --json)" 'length == 32 and all(.[]; .state == "Established")'
	check "$(lab status --json)" \
		'.state == "ready" and .sessions.bgp == {"established": 32, "expected": 32}'
	as_simulated
}

@test "everybody pings everybody; a hop limit runs out at a switch" {
	ping_all
	run inside b0-z0-h0 ping -n -c 1 -t 2 -W 10 fd5f:0:100::2
	[[ "$output" == *"Time exceeded"* ]]
}

@test "verified data, over more than one uplink" {
	check "$(lab run permutation --scope cross-zone --size 256K --json)" '.verified and .fabric == "ecmp"'
	check "$(lab show port --node b0-z0-p0-rdsw0 --json)" \
		'[.[] | select(.kind == "fabric") | .frames_tx > 100] == [true, true]'
	check "$(lab show counters --json)" '[.[] | .emulator_drops] | add == 0'
}

@test "without a link all goes on; with it all is as before" {
	usable b0-z0-p0-rdsw0 fd5f:0:100::/48 2
	lab link down b0-z0-p0-rdsw0:fab0
	wait_until 10 usable b0-z0-p0-rdsw0 fd5f:0:100::/48 1
	# Others come to the leaf by its other fabric switch: BGP has told them.
	wait_until 10 usable b0-z0-p0-rdsw1 fd5f::/48 1
	ping_all
	check "$(lab run permutation --scope cross-zone --size 256K --json)" .verified
	lab link up b0-z0-p0-rdsw0:fab0
	wait_until 20 as_simulated
}

@test "a spine switch dies and comes back" {
	lab node kill b0-p0-sdsw0
	wait_until 10 usable b0-z0-p0-fdsw0 fd5f:0:100::/48 1
	ping_all
	lab node start b0-p0-sdsw0
	wait_until 20 as_simulated
}

@test "drains and drills are for cell fabrics, and say so" {
	run -2 lab link drain b0-z0-p0-rdsw0:fab0
	run -2 lab chaos --random --seed 1 --duration 2ms
	[[ "$output" == *"drills are for cell fabrics"* ]]
}

@test "nothing is left" {
	timeout 60 "$DSFEMU" down "$LAB"
	nothing_left "$LAB"
}
