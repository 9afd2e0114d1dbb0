# BGP of switches with routers that aren't ours: BIRD in an external node behind a leaf, which the
# lab starts, and another one that somebody starts later.

load lib

setup_file()
{
	export LAB DIR
	LAB=$(lab_name bgp)
	DIR=$(mktemp -d)
	[ "$(id -u)" = 0 ] && command -v bird >/dev/null || return 0
	bird_conf "fd5f:0:0:100" 65010 secret aaaa >"$DIR/bird.conf"
	jq -n --rawfile conf "$DIR/bird.conf" '{ name: "x", time_dilation: 2000,
		buildings: [{ sdsw: 1, zones: [{ scaling_units: 1, rails: 2, hosts_per_unit: 1,
			fdsw: 1 }], edge: { edsw: 1, fdsw: 1 } }],
		nodes: [
			{ name: "bird", role: "external", files: { "bird.conf": $conf },
			  command: ["bird", "-f", "-c", "bird.conf", "-s", "ctl", "-P", "pid"] },
			{ name: "late", role: "external" },
			{ name: "b0-z0-p0-rdsw0", bgp: {
				neighbors: [
					{ address: "fd5f:0:0:100::2", asn: 65010, md5: "secret",
					  add_path: "both" },
					{ address: "fd5f:0:1:ff00::1", asn: 4200000000 }],
				originate: [{ prefix: "fd5f::/32" }] } },
			{ name: "b0-z0-p0-rdsw1", bgp: { neighbors: [
				{ address: "fd5f:0:1:100::2", asn: 65020, md5: "right",
				  import: [{ prefix: "2001:db8:bbbb::/48", local_pref: 300 }] },
				{ address: "fd5f:0:0:ff00::1", asn: 4200000000 }] } }],
		links: [{ a: "bird:eth0", b: "b0-z0-p0-rdsw0:eth1", rate: "100G" },
			{ a: "late:eth0", b: "b0-z0-p0-rdsw1:eth1", rate: "100G" }] }' >"$DIR/lab.json"
}

# SUBNET AS KEY NUMBER: tells 2001:db8:NUMBER::/48 and 2001:db8:NUMBER:1::/64, has an address there
bird_conf()
{
	cat <<END
router id 10.0.0.$(($2 % 256));
protocol device { }
protocol static own { ipv6; route 2001:db8:$4::/48 unreachable; route 2001:db8:$4:1::/64 unreachable; }
protocol kernel { ipv6 { export where proto = "up"; }; }
protocol bgp up {
	local $1::2 as $2;
	neighbor $1::1 as 4200000000;
	password "$3";
	connect delay time 1; connect retry time 1; error wait time 1, 2;
	ipv6 { import all; export where source = RTS_STATIC; add paths on; };
}
END
}

setup()
{
	need_root
	command -v bird >/dev/null || skip "bird is not installed"
}

teardown_file()
{
	[ ! -f "$DIR/late.pid" ] || kill "$(cat "$DIR/late.pid")" || true
	[ "$(id -u)" != 0 ] || "$DSFEMU" down "$LAB" >/dev/null 2>&1 || true
	rm -rf "$DIR"
}

# Until CONDITION holds of what is shown; else says what was.
comes() # WHAT CONDITION
{
	local result
	for _ in $(seq 100); do
		# shellcheck disable=SC2086 # words
		result=$(dsf show $1 --lab "$LAB" --json) || return 1
		jq -e "$2" <<<"$result" >/dev/null && return
		sleep 0.2
	done
	echo "$result"
	return 1
}

@test "up doesn't wait for a router that nobody has started, and names it" {
	local up
	up=$(dsf up "$DIR/lab.json" --name "$LAB" --json 2>"$BATS_TEST_TMPDIR/errors")
	cat "$BATS_TEST_TMPDIR/errors"
	jq -e '.state == "ready" and ([.awaited[] | select(.peer_node == "late")] | length == 1)' \
		<<<"$up"
	grep "b0-z0-p0-rdsw1 has no BGP session with late" "$BATS_TEST_TMPDIR/errors"
}

@test "the router that the lab has started is there, its key and add-path too" {
	comes "bgp summary" 'any(.[]; .peer_node == "bird" and .state == "Established" and
		.received == 2 and .asn == 65010 and .md5 and .add_path_receive and .add_path_send)'
	# leaf - edge switch twice, leaf - leaf; both ends; and one with the router
	run dsf status --lab "$LAB" --json
	[ "$status" = 0 ]
	jq -e '.sessions.bgp == { established: 7, expected: 8 }' <<<"$output"
}

@test "its routes reach edge switch and other leaf, with its own address as next hop" {
	comes route '[.[] | select(.prefix == "2001:db8:aaaa::/48") | .node] | sort ==
		["b0-e-p0-edsw0", "b0-z0-p0-rdsw0", "b0-z0-p0-rdsw1"]'
	comes route '[.[] | select(.prefix == "2001:db8:aaaa::/48") | .next_hops] | unique ==
		[["fd5f:0:0:100::2"]]'
	comes "bgp table" 'any(.[]; .node == "b0-e-p0-edsw0" and .as_path == "65010" and .best and
		.prefix == "2001:db8:aaaa:1::/64" and .peer_node == "b0-z0-p0-rdsw0")'
}

@test "a host of another leaf reaches what is behind the router, and back" {
	dsf exec --lab "$LAB" bird -- ip address add 2001:db8:aaaa::1/128 dev lo
	dsf exec --lab "$LAB" b0-z0-h0 -- ip -6 route add 2001:db8::/32 via fd5f:0:1::1 dev gpu1p0
	run dsf exec --lab "$LAB" b0-z0-h0 -- ping -6 -c 3 -i 0.2 -W 5 -I fd5f:0:1::2 2001:db8:aaaa::1
	echo "$output"
	[ "$status" = 0 ]
}

@test "its link goes: nobody sends there any more; it comes back" {
	dsf link down bird:eth0 --lab "$LAB"
	comes route 'all(.[]; .prefix != "2001:db8:aaaa::/48" or .usable == 0)'
	comes "bgp summary" 'all(.[]; .peer_node != "bird" or .state != "Established")'
	dsf link up bird:eth0 --lab "$LAB"
	comes route '[.[] | select(.prefix == "2001:db8:aaaa::/48" and .usable == 1)] | length == 3'
}

@test "a router with another key isn't heard; with the right one its routes pass the import rules" {
	bird_conf "fd5f:0:1:100" 65020 wrong bbbb >"$DIR/late.conf"
	dsf exec --lab "$LAB" late -- bird -c "$DIR/late.conf" -s "$DIR/late.ctl" -P "$DIR/late.pid"
	sleep 3
	comes "bgp summary" 'all(.[]; .peer_node != "late" or .state != "Established")'
	bird_conf "fd5f:0:1:100" 65020 right bbbb >"$DIR/late.conf"
	birdc -s "$DIR/late.ctl" configure
	comes "bgp summary" 'any(.[]; .peer_node == "late" and .state == "Established" and .received == 1)'
	comes "bgp table" '[.[] | select(.node == "b0-z0-p0-rdsw1" and .as_path == "65020") |
		[.prefix, .local_pref]] == [["2001:db8:bbbb::/48", 300]]'
}

@test "events tell of sessions and routes" {
	local events=$BATS_TEST_TMPDIR/events pid
	"$DSFEMU" events "$LAB" --json >"$events" 2>"$BATS_TEST_TMPDIR/errors" 3>&- &
	pid=$!
	wait_until 10 grep -q listening "$BATS_TEST_TMPDIR/errors"
	kill "$(cat "$DIR/late.pid")"
	rm -f "$DIR/late.pid"
	wait_until 10 grep -q route_changed "$events"
	kill "$pid"
	wait "$pid" || true
	cat "$events"
	jq -se 'any(.[]; .event == "bgp_down" and .node == "b0-z0-p0-rdsw1" and
		.peer_node == "late") and any(.[]; .event == "route_changed" and
		.prefix == "2001:db8:bbbb::/48" and .next_hops == 0)' "$events"
}
