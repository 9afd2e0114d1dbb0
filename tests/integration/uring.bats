#!/usr/bin/env bats
#
# The driver in real namespaces, without supervisor: switches are dsf-switch processes between links
# that bare-lab made, hosts are the kernel's.

setup_file() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	export PREFIX=uringbats$$
	export STATE=$BATS_FILE_TMPDIR/state
	bare_lab=$DSF_SOURCE/tests/integration/helpers/bare-lab
	switch=$(dirname "$DSFEMU")/dsf-switch
	"$DSFEMU" expand "$DSF_SOURCE/topologies/mini.json" >"$BATS_FILE_TMPDIR/lab.json"
	"$bare_lab" up "$BATS_FILE_TMPDIR/lab.json" "$PREFIX" "$STATE" "$switch" --time-dilation 4000
	# Reachability takes some refreshes.
	for _ in $(seq 100); do
		on b0-z0-h0 ping -q -c 1 -W 1 "$(address b0-z0-h3 gpu0p0)" >/dev/null && return
	done
	false
}

teardown_file() {
	[ "$(id -u)" != 0 ] || "$DSF_SOURCE/tests/integration/helpers/bare-lab" down "$PREFIX" "$STATE"
}

on() {
	local node=$1
	shift
	ip netns exec "$PREFIX-$node" "$@"
}

address() {
	jq -r --arg a "$1:$2" '.links[] | select(.a == $a) | .address_a' "$BATS_FILE_TMPDIR/lab.json"
}

loopback() {
	jq -r --arg n "$1" '.nodes[] | select(.name == $n) | .address' "$BATS_FILE_TMPDIR/lab.json"
}

@test "ping between hosts on every plane loses nothing" {
	for port in gpu0p0 gpu0p1 gpu1p0 gpu1p1; do
		run on b0-z0-h0 ping -q -c 20 -i 0.05 -W 5 -I "$(address b0-z0-h0 "$port")" \
			"$(address b0-z0-h3 "$port")"
		echo "$output"
		[[ $output == *" 0% packet loss"* ]]
	done
}

@test "packets of 8,900 bytes pass" {
	run on b0-z0-h0 ping -q -c 5 -i 0.05 -W 5 -s 8852 -M do "$(address b0-z0-h3 gpu0p0)"
	[[ $output == *" 0% packet loss"* ]]
}

@test "hop limit 1 is answered by the first switch" {
	run on b0-z0-h0 ping -c 1 -W 5 -t 1 "$(address b0-z0-h3 gpu0p0)"
	[[ $output == *"Time exceeded"* ]]
}

@test "kernel TCP between hosts, checksums partial as veth leaves them" {
	head -c 2000000 /dev/urandom >"$BATS_TEST_TMPDIR/in"
	on b0-z0-h3 timeout 60 socat -u TCP6-LISTEN:7000,reuseaddr CREATE:"$BATS_TEST_TMPDIR/out" &
	on b0-z0-h0 timeout 60 socat -u FILE:"$BATS_TEST_TMPDIR/in" "TCP6:[$(address b0-z0-h3 gpu0p0)]:7000,retry=50,interval=0.2"
	wait
	cmp "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
}

@test "kernel TCP between switches by the host port" {
	head -c 500000 /dev/urandom >"$BATS_TEST_TMPDIR/in"
	on b0-z0-p0-rdsw3 timeout 60 socat -u TCP6-LISTEN:7000,reuseaddr \
		CREATE:"$BATS_TEST_TMPDIR/out" &
	on b0-z0-p0-rdsw0 timeout 60 socat -u FILE:"$BATS_TEST_TMPDIR/in" \
		"TCP6:[$(loopback b0-z0-p0-rdsw3)]:7000,retry=50,interval=0.2"
	wait
	cmp "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
}

@test "a fabric link that flaps costs nothing for good" {
	on b0-z0-p0-rdsw0 ip link set fab0 down
	sleep 1
	run on b0-z0-h0 ping -q -c 20 -i 0.05 -W 5 "$(address b0-z0-h3 gpu0p0)"
	[[ $output == *" 0% packet loss"* ]]
	on b0-z0-p0-rdsw0 ip link set fab0 up
	sleep 1
	run on b0-z0-h0 ping -q -c 20 -i 0.05 -W 5 "$(address b0-z0-h3 gpu0p0)"
	[[ $output == *" 0% packet loss"* ]]
}

@test "a switch that is killed and started again takes its place" {
	pid=$(cat "$STATE/b0-z0-p0-fdsw0.pid")
	kill -KILL "$pid"
	(
		cd /
		# Not by on: the pid must be that of the program.
		ip netns exec "$PREFIX-b0-z0-p0-fdsw0" "$(dirname "$DSFEMU")/dsf-switch" \
			"$BATS_FILE_TMPDIR/lab.json" b0-z0-p0-fdsw0 --time-dilation 4000 >"$STATE/again.log" 2>&1 3>&- &
		echo $! >"$STATE/b0-z0-p0-fdsw0.pid"
	)
	sleep 2
	run on b0-z0-h0 ping -q -c 20 -i 0.05 -W 5 "$(address b0-z0-h3 gpu0p0)"
	[[ $output == *" 0% packet loss"* ]]
}

@test "SIGTERM ends every switch with 0, nothing was lost by the emulator" {
	for file in "$STATE"/*.pid; do
		kill -TERM "$(cat "$file")"
	done
	for _ in $(seq 100); do
		alive=0
		for file in "$STATE"/*.pid; do
			kill -0 "$(cat "$file")" 2>/dev/null && alive=$((alive + 1))
		done
		[ "$alive" = 0 ] && break
		sleep 0.1
	done
	[ "$alive" = 0 ]
	! grep -h "refused\|error" "$STATE"/*.log
}
