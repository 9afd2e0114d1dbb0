#!/usr/bin/env bats
# Our switches beside FRR, BIRD, GoBGP and ExaBGP in external nodes of live labs: sessions, routes and
# packets both ways, withdrawals, keys, limits, shutdown texts, graceful restart, and their ends.

bats_require_minimum_version 1.5.0
load ../integration/lib.bash
load devices.bash

setup()
{
	need_root
	LAB=$(lab_name dv)
	PCAP=$BATS_TEST_TMPDIR/pcap
}

teardown()
{
	[ "$(id -u)" = 0 ] || return 0
	"$DSFEMU" down "$LAB" --kill --quiet || true
}

# Both shipped labs: everything from the session to a packet.
there_and_back() # ROUTER PREFIX
{
	up "$SOURCE/topologies/$1.json"
	comes "bgp summary" '[.[] | select(.state != "Established")] == []'
	comes "bgp table" "any(.[]; .node == \"rdsw0\" and .prefix == \"$2::/48\" and .best and
		.next_hop == \"fd5f:0:ff00::2\")"
	until_is 1 "$1"_paths fd5f::/32
	until_is 1 kernel_routes "$1" "fd5f::/32 .*via fd5f:0:ff00::1"
	reaches h0 "$2::1"
	reaches h1 "$2::1"
	dsf exec "$1" --lab "$LAB" -- ping -6 -c 2 -i 0.2 -I "$2::1" fd5f:0:1::2
	"$1"_withdraw
	comes "bgp table" "all(.[]; .prefix != \"$2::/48\")"
	comes route "all(.[]; .prefix != \"$2::/48\")"
	! reaches h0 "$2::1"
	"$1"_announce
	comes route "[.[] | select(.prefix == \"$2::/48\" and .usable == 1) | .node] ==
		[\"rdsw0\", \"rdsw1\", \"edsw0\"]"
	reaches h0 "$2::1"
	dsf status "$LAB"
	dsf down "$LAB"
	nothing_left "$LAB"
}

@test "bird.json: routes and packets both ways, withdrawals, and nothing left" {
	need bird
	there_and_back bird 2001:db8:b1
}

@test "frr.json: the same with FRR and its daemons" {
	need frr
	there_and_back frr 2001:db8:f1
}

@test "FRR, BIRD, GoBGP and ExaBGP at one switch: each has the others' routes by way of it" {
	need frr bird gobgpd exabgp tshark
	routers '' bird frr gobgp exabgp
	up "$LAB_FILE"
	capture
	comes "bgp summary" '[.[] | select(.node == "edsw0" and .state == "Established")] | length == 6'
	for router in bird frr gobgp; do
		for prefix in b1 f1 60 e1; do
			until_is 1 ${router}_paths 2001:db8:$prefix::/48
		done
		until_is 1 ${router}_paths fd5f::/32
	done
	reaches h0 2001:db8:60::1
	# from outside to outside, through our switch
	dsf exec bird --lab "$LAB" -- ping -6 -c 2 -i 0.2 -I 2001:db8:b1::1 2001:db8:f1::1
	bird_withdraw
	frr_withdraw
	for prefix in b1 f1; do
		until_is 0 gobgp_paths 2001:db8:$prefix::/48
	done
	until_is 0 frr_paths 2001:db8:b1::/48
	until_is 0 bird_paths 2001:db8:f1::/48
	comes "bgp neighbors" 'all(.[]; .refused == 0 and .withdrawn_by_error == 0 and
		.established_times <= 1)'
	no_malformed
}

@test "the same as iBGP peers: nothing of one goes to another" {
	need frr bird gobgpd exabgp
	IBGP=1 routers '' bird frr gobgp exabgp
	up "$LAB_FILE"
	comes "bgp neighbors" '[.[] | select(.node == "edsw0" and .state == "Established" and
		.type == "internal")] | length == 6'
	comes "bgp table" '[.[] | select(.node == "edsw0" and .as_path == "") | .prefix] | unique ==
		["2001:db8:60::/48", "2001:db8:b1::/48", "2001:db8:e1::/48", "2001:db8:f1::/48",
		"fd5f::/32"]'
	for router in bird frr gobgp; do
		until_is 1 ${router}_paths fd5f::/32
	done
	[ "$(frr_paths 2001:db8:b1::/48)" = 0 ]
	[ "$(bird_paths 2001:db8:f1::/48)" = 0 ]
	[ "$(gobgp_paths 2001:db8:f1::/48)" = 0 ]
	comes "bgp table" 'all(.[]; .node != "rdsw0" or .prefix != "2001:db8:f1::/48")'
}

@test "TCP MD5: with the key a session, with another one or without none" {
	need frr bird gobgpd
	routers '(.[] | select(.asn == 65001)).md5 = "secret" | (.[] | select(.asn == 65002)).md5 = "secret" |
		(.[] | select(.asn == 65003)).md5 = "secret"' bird frr gobgp
	change '(.nodes[] | select(.name == "bird").files["bird.conf"]) |=
		map(if startswith("protocol bgp") then ., "  password \"secret\";" else . end) |
		(.nodes[] | select(.name == "frr").files["bgpd.conf"]) |=
		map(if endswith("connect 1") then ., " neighbor fd5f:0:ff00:100::1 password other" else . end)'
	up "$LAB_FILE"
	comes "bgp neighbors" 'any(.[]; .peer_node == "bird" and .state == "Established" and .md5)'
	sleep 3
	comes "bgp neighbors" 'all(.[]; (.peer_node != "frr" and .peer_node != "gobgp") or
		.established_times == 0)'
	# the right key, and they are here
	frr_do "configure terminal" "router bgp 65002" "neighbor fd5f:0:ff00:100::1 password secret"
	comes "bgp neighbors" 'any(.[]; .peer_node == "frr" and .state == "Established" and .md5)'
}

@test "too many prefixes: each side ends the session, others stay" {
	need frr bird
	routers '(.[] | select(.asn == 65001)).max_paths = 1' bird frr
	change '(.nodes[] | select(.name == "bird").files["bird.conf"]) += ["protocol static more { ipv6;",
		"  route 2001:db8:b2::/48 unreachable; }"]'
	up "$LAB_FILE"
	comes "bgp neighbors" 'any(.[]; .peer_node == "bird" and .state != "Established" and
		.limit_reached > 0 and (.error_sent // "" | startswith("6/1")))'
	comes "bgp table" 'all(.[]; .as_path != "65001")'
	birdc -s "$(folder bird)/bird.ctl" show protocols all edsw0 | grep -i "maximum number of prefixes"
	comes "bgp neighbors" 'any(.[]; .peer_node == "frr" and .state == "Established" and
		.established_times == 1)'
	# FRR takes one of ours: fd5f::/32 and no more.
	birdc -s "$(folder bird)/bird.ctl" disable more
	comes "bgp neighbors" 'any(.[]; .peer_node == "bird" and .state == "Established" and .received == 1)'
	until_is 1 frr_paths 2001:db8:b1::/48
	frr_do "configure terminal" "router bgp 65002" "address-family ipv6 unicast" \
		"neighbor fd5f:0:ff00:100::1 maximum-prefix 1"
	comes "bgp neighbors" 'any(.[]; .peer_node == "frr" and .state != "Established" and
		(.error_received // "" | startswith("6/1")))'
}

@test "shutdown with a text: it is shown, the session stays away and comes back" {
	need bird frr
	routers '' bird frr
	up "$LAB_FILE"
	comes "bgp summary" '[.[] | select(.node == "edsw0" and .state == "Established")] | length == 4'
	birdc -s "$(folder bird)/bird.ctl" disable edsw0 '"gone for lunch"'
	comes "bgp neighbors" 'any(.[]; .peer_node == "bird" and .state != "Established" and
		.error_received == "6/2" and .text_received == "gone for lunch")'
	comes "bgp table" 'all(.[]; .as_path != "65001")'
	frr_do "configure terminal" "router bgp 65002" "neighbor fd5f:0:ff00:100::1 shutdown message back at noon"
	comes "bgp neighbors" 'any(.[]; .peer_node == "frr" and
		.error_received == "6/2" and .text_received == "back at noon")'
	birdc -s "$(folder bird)/bird.ctl" enable edsw0
	frr_do "configure terminal" "router bgp 65002" "no neighbor fd5f:0:ff00:100::1 shutdown"
	comes "bgp summary" '[.[] | select(.node == "edsw0" and .state == "Established")] | length == 4'
}

@test "graceful restart of the router: its control plane is away, packets aren't lost" {
	need bird
	routers '' bird
	up "$LAB_FILE"
	comes route '[.[] | select(.prefix == "2001:db8:b1::/48" and .usable == 1)] | length == 3'
	wait_until 20 reaches h0 2001:db8:b1::1
	timeout 60 "$DSFEMU" exec h0 --lab "$LAB" -- ping -6 -q -c 60 -i 0.1 -W 2 2001:db8:b1::1 \
		>"$BATS_TEST_TMPDIR/ping" 3>&- &
	ping=$!
	dsf node kill bird --lab "$LAB"
	comes "bgp neighbors" 'any(.[]; .peer_node == "bird" and .state != "Established" and .stale == 1)'
	comes route '[.[] | select(.prefix == "2001:db8:b1::/48" and .usable == 1)] | length == 3'
	dsf node start bird --lab "$LAB"
	comes "bgp neighbors" 'any(.[]; .peer_node == "bird" and .state == "Established" and
		.stale == 0 and .received == 1 and .established_times == 2)'
	wait "$ping" || true
	cat "$BATS_TEST_TMPDIR/ping"
	grep -q " 0% packet loss" "$BATS_TEST_TMPDIR/ping"
}

# A dead box has no light: routers that are to wait for it must not look at their carrier. It comes
# back without what it forwarded by (F = 0), and they take its routes anew.
@test "graceful restart of our switch: FRR and BIRD keep its routes until it is back" {
	need frr bird
	routers '' bird frr
	up "$LAB_FILE"
	comes "bgp summary" '[.[] | select(.node == "edsw0" and .state == "Established")] | length == 4'
	until_is 1 frr_paths fd5f::/32
	until_is 1 bird_paths fd5f::/32
	dsf node kill edsw0 --lab "$LAB"
	sleep 2
	[ "$(frr_paths fd5f::/32)$(bird_paths fd5f::/32)" = 11 ]
	dsf node start edsw0 --lab "$LAB"
	comes "bgp neighbors" '[.[] | select(.node == "edsw0" and .state == "Established" and
		.established_times == 1)] | length == 4'
	until_is 1 frr_paths fd5f::/32
	until_is 1 bird_paths fd5f::/32
	until_is false frr_stale fd5f::/32
	wait_until 20 reaches h0 2001:db8:b1::1
	wait_until 20 reaches h0 2001:db8:f1::1
}

@test "FRR's daemons: stop, a killed bgpd or supervisor, down: none of them stays" {
	need frr
	up "$SOURCE/topologies/frr.json"
	[ "$(daemons)" = 2 ]
	dsf node stop frr --lab "$LAB"
	until_is 0 daemons
	dsf node start frr --lab "$LAB"
	until_is 2 daemons
	kill -9 "$(node_pid "$LAB" frr)"
	until_is 0 daemons
	run dsf status "$LAB"
	[ "$status" -eq 1 ]
	[[ "$output" == *"exited, signal 9"* ]]
	dsf node restart frr --lab "$LAB"
	comes "bgp summary" '[.[] | select(.state != "Established")] == []'
	kill -9 "$(supervisor_pid "$LAB")"
	dsf down "$LAB"
	nothing_left "$LAB"
	until_is 0 daemons
}
