# Our BGP core over kernel TCP against FRR, BIRD, GoBGP and ExaBGP: sessions, routes, add-path both
# ways, withdrawals, refresh, shutdown texts, limits, MD5 and graceful restart.

load lib

frr_shutdown()
{
	vtysh_do -c "show bgp neighbors $NET::1 json" | jq -r '.[].lastShutdownDescription'
}

teardown()
{
	net_down
}

@test "FRR, BIRD, GoBGP and ExaBGP: sessions, and routes among them by way of us" {
	need frr bird gobgpd exabgp jq tshark
	net_up us frr bird gobgp exabgp
	begin us tcpdump -U -i eth0 -w "$DIR/pcap" tcp port 179
	us "$(peer frr,add-path=3)" "$(peer bird,add-path=3)" "$(peer gobgp,add-path=3)" \
		"$(peer exabgp,add-path=3)" origin=2001:db8:1::/48
	frr_up "af addpath-tx-all-paths"
	bird_up "af add paths on" "enable extended messages on"
	gobgp_up
	exabgp_up
	until_is "Established Established Established Established" \
		state '[.peers[].state] | join(" ")'
	until_is "true true true true" state '[.peers[] | .add_path_receive and .add_path_send] | map(tostring) | join(" ")'
	# in: one path of each for the common prefix; two ids of BIRD, three of ExaBGP
	until_is 4 paths_of 2001:db8:aaaa::/48
	until_is 2 paths_of 2001:db8:3::/48
	until_is 3 paths_of 2001:db8:5::/48
	until_is 1 paths_of 2001:db8:4::/48
	until_is 1 paths_of 2001:db8:2::/48
	# out: ours, and the others' with all their ids
	until_is 1 frr_paths 2001:db8:1::/48
	until_is 4 frr_paths 2001:db8:aaaa::/48
	until_is 3 frr_paths 2001:db8:5::/48
	until_is 3 bird_paths 2001:db8:aaaa::/48
	until_is 3 bird_paths 2001:db8:5::/48
	until_is 2 gobgp_paths 2001:db8:3::/48
	until_is 4 gobgp_paths 2001:db8:aaaa::/48
	# withdrawals, both ways
	vtysh_do -c "configure terminal" -c "router bgp 65001" -c "address-family ipv6 unicast" \
		-c "no network 2001:db8:aaaa::/48"
	until_is 3 paths_of 2001:db8:aaaa::/48
	until_is 2 bird_paths 2001:db8:aaaa::/48
	bird_do disable two
	until_is 1 paths_of 2001:db8:3::/48
	until_is 1 frr_paths 2001:db8:3::/48
	tell originate 0 0
	until_is 0 bird_paths 2001:db8:1::/48
	# refresh, both ways
	local before
	before=$(peer_field 0 updates_received)
	tell refresh 0
	until_is true state ".peers[0].updates_received > $before"
	before=$(peer_field 0 updates_sent)
	vtysh_do -c "clear bgp ipv6 unicast $NET::1 in"
	until_is true state ".peers[0].updates_sent > $before"
	before=$(peer_field 1 updates_sent)
	bird_do reload in dut
	until_is true state ".peers[1].updates_sent > $before"
	until_is "1 1 1 1" state '[.peers[].established | tostring] | join(" ")'
	[ "$(state '[.peers[].refused] | add')" = 0 ]
	# and what was on the wire is BGP as tshark knows it
	[ "$(tshark -r "$DIR/pcap" -Y bgp 2>/dev/null | wc -l)" -gt 20 ]
	[ "$(tshark -r "$DIR/pcap" -Y "_ws.malformed || (bgp && _ws.expert.severity == error)" 2>/dev/null)" = "" ]
}

@test "as iBGP peers: FRR, BIRD and GoBGP" {
	need frr bird gobgpd jq
	IBGP=1
	net_up us frr bird gobgp
	us "$(peer frr,add-path=3)" "$(peer bird,add-path=3)" "$(peer gobgp,add-path=3)" \
		origin=2001:db8:1::/48
	frr_up "af addpath-tx-all-paths"
	bird_up "af add paths on"
	gobgp_up
	until_is "Established Established Established" state '[.peers[].state] | join(" ")'
	until_is 3 paths_of 2001:db8:aaaa::/48
	until_is 1 frr_paths 2001:db8:1::/48
	until_is 1 bird_paths 2001:db8:1::/48
	until_is 1 gobgp_paths 2001:db8:1::/48
	# nothing of one iBGP peer goes to another
	[ "$(frr_paths 2001:db8:aaaa::/48)" = 1 ]
	[ "$(bird_paths 2001:db8:3::/48)" = 0 ]
}

@test "shutdown with a text, both ways" {
	need frr bird jq
	net_up us frr bird
	us "$(peer frr)" "$(peer bird)"
	frr_up
	bird_up
	until_is "Established Established" state '[.peers[].state] | join(" ")'
	bird_do 'disable dut "gone for lunch"'
	until_is "6/2 gone for lunch" state '.peers[1].received + " " + .peers[1].text'
	tell stop 0 back at noon
	until_is Idle peer_field 0 state
	until_is "back at noon" frr_shutdown
	tell start 0
	until_is Established peer_field 0 state
	bird_do enable dut
	until_is Established peer_field 1 state
}

@test "too many prefixes end the session, and it comes back after its time" {
	need bird jq
	net_up us bird
	us "$(peer bird,max=1,idle=2)"
	bird_up
	until_is 6/1 peer_field 0 sent
	until_is Idle peer_field 0 state
	until_is 0 paths_of 2001:db8:3::/48
	bird_do disable one
	until_is Established peer_field 0 state
	until_is 1 peer_field 0 paths
}

@test "TCP MD5: with the key a session, with another none" {
	need frr bird jq
	net_up us frr bird
	us "$(peer frr,md5=secret)" "$(peer bird,md5=wrong)"
	frr_up "password secret"
	bird_up 'password "secret"'
	until_is Established peer_field 0 state
	[ "$(peer_field 1 established)" = 0 ]
}

@test "graceful restart: routes of a BIRD that is killed stay until it is back" {
	need bird jq
	net_up us bird
	us "$(peer bird,hold=9)"
	bird_up "graceful restart on" "graceful restart time 20"
	until_is 2 peer_field 0 paths
	kill -9 "$(cat "$DIR/bird.pid")"
	until_is 2 peer_field 0 stale
	[ "$(paths_of 2001:db8:3::/48)" = 1 ]
	rm -f "$DIR/bird.ctl"
	in_ns bird bird -R -c "$DIR/bird.conf" -s "$DIR/bird.ctl" -P "$DIR/bird.pid" 3>&-
	until_is Established peer_field 0 state
	until_is "2 0" state '.peers[0] | "\(.paths) \(.stale)"'
}

@test "graceful restart: FRR keeps our routes while we are away" {
	need frr jq
	net_up us frr
	us "$(peer frr,restart=60)" origin=2001:db8:1::/48
	frr_up
	until_is Established peer_field 0 state
	until_is 1 frr_paths 2001:db8:1::/48
	kill -9 "$(head -n 1 "$DIR/pids")"
	sleep 2
	[ "$(frr_paths 2001:db8:1::/48)" = 1 ]
	rm "$DIR/control"
	us "$(peer frr,restart=60)" origin=2001:db8:1::/48
	until_is Established peer_field 0 state
	until_is 1 frr_paths 2001:db8:1::/48
}
