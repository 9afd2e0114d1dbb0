#!/usr/bin/env bats
# The kernel's own IPv6 across the fabric: what a host that knows nothing of DSF sees.

bats_require_minimum_version 1.5.0

setup_file()
{
	load traffic
	traffic_need ping iperf3 ethtool tcpdump socat
	traffic_up "$DSF_SOURCE/topologies/mini.json" kern
}

teardown_file()
{
	load traffic
	traffic_down
}

setup()
{
	load traffic
}

# lossless COMMAND... : a ping that must lose nothing
lossless()
{
	run "$@"
	echo "$* -> $status: $output"
	[ "$status" = 0 ]
	[[ "$output" == *" 0% packet loss"* ]]
}

@test "ping between any two hosts on each plane loses nothing, from the first packet" {
	for plane in 0 1; do
		for from in $(hosts); do
			source=$(address "$from" "gpu0p$plane")
			for to in $(hosts); do
				[ "$from" != "$to" ] || continue
				for rail in 0 1; do
					target=$(address "$to" "gpu${rail}p$plane")
					lossless in_node "$from" ping -6 -n -q -c 5 -i 0.02 -W 5 \
						-I "$source" "$target"
				done
			done
		done
	done
}

@test "a host reaches its gateway, and far switches by their loopbacks" {
	for switch in b0-z0-p0-rdsw0 b0-z0-p0-rdsw3; do
		lossless in_node b0-z0-h0 ping -6 -n -q -c 3 -i 0.05 -W 5 \
			-I "$(address b0-z0-h0 gpu0p0)" "$(loopback "$switch")"
	done
}

@test "switches reach each other in band" {
	lossless in_node b0-z0-p0-rdsw0 ping -6 -n -q -c 5 -i 0.05 -W 5 \
		"$(loopback b0-z0-p0-rdsw3)"
}

@test "8,900-byte packets pass" {
	target=$(address b0-z0-h2 gpu0p0)
	lossless in_node b0-z0-h0 ping -6 -n -q -c 5 -i 0.1 -W 5 -M do -s 8852 \
		-I "$(address b0-z0-h0 gpu0p0)" "$target"
}

@test "Packet Too Big tells the MTU of the target's port" {
	target=$(address b0-z0-h3 gpu1p1)
	run in_node b0-z0-h0 ping -6 -n -c 2 -i 0.2 -W 2 -M do -s 6000 \
		-I "$(address b0-z0-h0 gpu0p1)" "$target"
	echo "$output"
	[ "$status" = 1 ]
	[[ "$output" == *"Packet too big: mtu=4500"* || "$output" == *"mtu=4500"* ]]
	# The kernel has learnt it: TCP and fragments now fit.
	lossless in_node b0-z0-h0 ping -6 -n -q -c 2 -i 0.2 -W 5 -s 6000 \
		-I "$(address b0-z0-h0 gpu0p1)" "$target"
}

@test "Time Exceeded comes from the first switch, and no further one lowers the hop limit" {
	source=$(address b0-z0-h0 gpu0p0)
	target=$(address b0-z0-h2 gpu0p0)
	run in_node b0-z0-h0 ping -6 -n -c 1 -W 5 -t 1 -I "$source" "$target"
	echo "$output"
	[ "$status" = 1 ]
	[[ "$output" == *"From ${source%::2}::1"*"Time exceeded: Hop limit"* ]]
	lossless in_node b0-z0-h0 ping -6 -n -q -c 1 -W 5 -t 2 -I "$source" "$target"
}

@test "an address nobody has is answered as unreachable or not at all, and harms nobody" {
	source=$(address b0-z0-h0 gpu0p0)
	run in_node b0-z0-h0 ping -6 -n -c 2 -i 0.2 -W 1 -I "$source" "fd5f::dead"
	echo "$output"
	[ "$status" != 0 ]
	lossless in_node b0-z0-h0 ping -6 -n -q -c 2 -i 0.05 -W 5 -I "$source" \
		"$(address b0-z0-h1 gpu0p0)"
}

# tcp FROM TO : bytes that iperf3 moved in two seconds
tcp()
{
	local source target server
	source=$(address "$1" gpu0p0)
	target=$(address "$2" gpu0p0)
	in_node "$2" iperf3 -6 -s -1 -B "$target" >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	server=$!
	wait_for 10 listening "$2" 5201
	in_node "$1" iperf3 -6 -c "$target" -B "$source" -t 2 -J >"$BATS_TEST_TMPDIR/client"
	wait "$server"
	jq -er '.end.sum_received.bytes' "$BATS_TEST_TMPDIR/client"
}

listening()
{
	in_node "$1" ss -6 -H -l -n -t "sport = :$2" | grep -q .
}

offloads()
{
	for node in b0-z0-h0 b0-z0-h2; do
		# shellcheck disable=SC2086
		in_node "$node" ethtool -K gpu0p0 $1 >/dev/null
	done
}

@test "TCP runs with host offloads in any state" {
	for state in "tx on sg on tso on gso on gro on" "tx on sg on tso off gso off gro off" \
		"tx off tso off gso off gro on" "tx off sg off tso off gso off gro off"; do
		offloads "$state"
		bytes=$(tcp b0-z0-h0 b0-z0-h2)
		echo "$state: $bytes bytes"
		[ "$bytes" -gt 1000000 ]
	done
	offloads "tx on sg on tso on gso on gro on"
}

# udp_checksums OFFLOAD PORT : datagrams of several sizes, looked at where they arrive
udp_checksums()
{
	local target source dump socket wanted=0
	target=$(address b0-z0-h2 gpu0p0)
	source=$(address b0-z0-h0 gpu0p0)
	in_node b0-z0-h0 ethtool -K gpu0p0 tx "$1" >/dev/null
	in_node b0-z0-h2 timeout 30 tcpdump -i gpu0p0 -n -vv -l --immediate-mode \
		"udp port $2" >"$BATS_TEST_TMPDIR/dump" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	dump=$!
	wait_for 10 grep -q "listening on" "$BATS_TEST_TMPDIR/err"
	in_node b0-z0-h2 timeout 30 socat -u "UDP6-RECV:$2,bind=[$target]" \
		"CREATE:$BATS_TEST_TMPDIR/received" 3>&- &
	socket=$!
	wait_for 10 udp_listening b0-z0-h2 "$2"
	for size in 1 2 3 64 511 512 1399 1400 8000; do
		head -c "$size" /dev/zero | in_node b0-z0-h0 socat -u - \
			"UDP6-SENDTO:[$target]:$2,bind=[$source]"
		wanted=$((wanted + 1))
	done
	wait_for 10 sums "$wanted"
	kill "$dump" "$socket" 2>/dev/null
	wait "$dump" "$socket" 2>/dev/null || true
	cat "$BATS_TEST_TMPDIR/dump"
	run grep -c "bad udp cksum" "$BATS_TEST_TMPDIR/dump"
	[ "$output" = 0 ]
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/received")" = $((1 + 2 + 3 + 64 + 511 + 512 + 1399 + 1400 + 8000)) ]
}

sums()
{
	[ "$(grep -c "udp sum ok" "$BATS_TEST_TMPDIR/dump")" = "$1" ]
}

udp_listening()
{
	in_node "$1" ss -6 -H -l -n -u "sport = :$2" | grep -q .
}

@test "UDP checksums are valid at the receiver, computed by the host" {
	udp_checksums off 7777
}

@test "UDP checksums are valid at the receiver, left to the NIC by the host" {
	udp_checksums on 7778
}

@test "nothing of this was dropped in the fabric" {
	run --separate-stderr "$DSFEMU" show counters --json
	[ "$status" = 0 ]
	echo "$output" | jq -e 'all(.[]; .fabric_drops == 0 and .reassembly_errors == 0 and
		.fabric_link_down_dropped == 0 and .emulator_drops == 0)'
}

@test "show answers as one document with the keys of its rows" {
	while read -r what keys; do
		# shellcheck disable=SC2086
		run --separate-stderr "$DSFEMU" show ${what//_/ } --json
		echo "$what: $status"
		[ "$status" = 0 ]
		echo "$output" | jq -e --arg keys "$keys" \
			'length > 0 and ($keys | split(",")) - (.[0] | keys) == []' >/dev/null
		# shellcheck disable=SC2086
		run "$DSFEMU" show ${what//_/ }
		[ "$status" = 0 ]
		[ "${#lines[@]}" -gt 1 ]
	done <<-END
		fabric node,role,fabric_ports,fabric_ports_live,destinations,destinations_reached
		fabric_reachability node,destination,output,advertised,withdrawn,cut_by_balance
		fabric_topology a,b,kind,rate_bps,delay_ns,state
		systemport node,system_port,port,rate_bps,scope,state
		voq node,system_port,class,packets,bytes,credits_requested,credits_granted,dropped,ecn_marked
		ndp node,address,mac,system_port,switch,state,scope
		route node,prefix,origin,system_port
		port node,port,carrier,live,rate_bps,frames_tx,frames_rx
		counters node,cells_tx,cells_rx,cells_lost,reassembly_errors,fabric_drops,voq_drops,nic_drops,emulator_drops
	END
}

@test "VOQs are shown by port and class" {
	"$DSFEMU" show voq --json | jq -e 'group_by(.node) | length > 3 and
		all(.[]; . == sort_by(.system_port, .class))'
}

@test "show knows what it doesn't know" {
	run "$DSFEMU" show weather
	[ "$status" = 2 ]
	run "$DSFEMU" show port --node nobody
	[ "$status" = 2 ]
	run "$DSFEMU" show fabric reachability b0-z0-h0
	[ "$status" = 2 ]
	[[ "$output" == *"b0-z0-h0 is no destination"* ]]
	run "$DSFEMU" show port --lab nolab
	[ "$status" != 0 ]
}
