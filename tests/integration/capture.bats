#!/usr/bin/env bats
# Captures: every frame from "live" to Ctrl-C is in the file, and tshark understands it.

setup_file()
{
	load traffic
	traffic_need ping tcpdump dumpcap tshark capinfos iperf3
	# Little dilation: captures have to keep up with something.
	traffic_up "$DSF_SOURCE/topologies/mini.json" capt 2000
}

teardown_file()
{
	load traffic
	traffic_down
}

setup()
{
	load traffic
	capture_pid=
}

teardown()
{
	[ -z "$capture_pid" ] || kill -INT "$capture_pid" 2>/dev/null || true
}

# start ARGUMENTS... : a capture that is live when this returns
start()
{
	"$DSFEMU" capture "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	capture_pid=$!
	wait_for 10 grep -q "capture: live on" "$BATS_TEST_TMPDIR/err"
}

# stop : ends it; its code is in $code
stop()
{
	code=0
	kill -INT "$capture_pid"
	wait "$capture_pid" || code=$?
	capture_pid=
	cat "$BATS_TEST_TMPDIR/err"
}

shark()
{
	tshark -X "lua_script:$DSF_SOURCE/scripts/wireshark/dsf.lua" "$@" 2>"$BATS_TEST_TMPDIR/tshark"
}

frames()
{
	capinfos -Mcr "$1" 2>/dev/null | sed -nE 's/^Number of packets: *([0-9]+).*/\1/p'
}

ping_from_h0()
{
	in_node b0-z0-h0 ping -6 -n -q "$@" -I "$(address b0-z0-h0 gpu0p0)" \
		"$(address b0-z0-h2 gpu0p0)" >/dev/null
}

@test "first and last frame are there: a host port's count grows as the file does" {
	file="$BATS_TEST_TMPDIR/a.pcapng"
	ping_from_h0 -c 1
	# The kernel may ask for a neighbour between our two looks; then look again.
	for attempt in 1 2 3; do
		start b0-z0-h0:gpu0p0 -w "$file"
		before=$(kernel_frames b0-z0-h0 gpu0p0)
		ping_from_h0 -c 100 -i 0.002
		after=$(kernel_frames b0-z0-h0 gpu0p0)
		stop
		[ "$code" = 0 ]
		echo "attempt $attempt: $(frames "$file") in the file, counter grew by $((after - before))"
		[ "$(frames "$file")" != $((after - before)) ] || break
	done
	[ "$(frames "$file")" = $((after - before)) ]
	[ $((after - before)) -ge 200 ]
	[ "$(tshark -r "$file" -Y icmpv6.type==128 -T fields -e icmpv6.echo.sequence_number \
		2>/dev/null | sed -n '1p;$p' | xargs)" = "1 100" ]
}

@test "at full rate nothing is missing from a fabric port's file" {
	file="$BATS_TEST_TMPDIR/b.pcapng"
	source=$(address b0-z0-h0 gpu0p0)
	target=$(address b0-z0-h2 gpu0p0)
	switch=b0-z0-p0-rdsw0
	in_node b0-z0-h2 iperf3 -6 -s -1 -B "$target" >/dev/null 2>&1 3>&- &
	server=$!
	sleep 0.3
	outer_before=$(kernel_frames $switch fab0)
	start $switch:fab0 -w "$file"
	inner_before=$(kernel_frames $switch fab0)
	in_node b0-z0-h0 iperf3 -6 -c "$target" -B "$source" -t 2 -J >"$BATS_TEST_TMPDIR/iperf"
	inner_after=$(kernel_frames $switch fab0)
	stop
	outer_after=$(kernel_frames $switch fab0)
	wait "$server" || true
	[ "$code" = 0 ]
	count=$(frames "$file")
	echo "$((inner_after - inner_before)) <= $count <= $((outer_after - outer_before))"
	[ "$count" -ge $((inner_after - inner_before)) ]
	[ "$count" -le $((outer_after - outer_before)) ]
	[ $((inner_after - inner_before)) -gt 1000 ]
	# Whole frames: as long as they were on the wire.
	[ "$(shark -r "$file" -Y 'frame.len != frame.cap_len' | wc -l)" = 0 ]
	[ "$(shark -r "$file" -Y 'dsf.malformed || _ws.malformed' | wc -l)" = 0 ]
}

@test "all ports of a node, by name; tshark shows every kind of cell and no malformed one" {
	file="$BATS_TEST_TMPDIR/c.pcapng"
	switch=b0-z0-p0-rdsw0
	start $switch -w "$file"
	ping_from_h0 -c 50 -i 0.01 -s 4000
	stop
	[ "$code" = 0 ]
	names=$(capinfos -M "$file" 2>/dev/null | sed -nE 's/.*Name = (.*)/\1/p' | sort | xargs)
	echo "interfaces: $names"
	for name in $(jq -r --arg n "$switch:" \
		'.links[] | .a, .b | select(startswith($n)) | sub(".*:"; "")' "$TRAFFIC_TOPOLOGY"); do
		[[ " $names " == *" $name "* ]]
	done
	[ "$(shark -r "$file" -Y 'dsf.malformed || _ws.malformed' | tee /dev/stderr | wc -l)" = 0 ]
	for filter in "dsf.cell.kind == 1" "dsf.cell.kind == 2" "dsf.cell.kind == 3" \
		"dsf.cell.kind == 4" "dsf.cell.last == 1" "dsf.heard == 1" "dsf.departure > 0" \
		"dsf.inner.destination == $(address b0-z0-h2 gpu0p0)" icmpv6; do
		echo "$filter"
		[ "$(shark -r "$file" -Y "$filter" | wc -l)" -gt 0 ]
	done
	# What a train says of itself is what it holds.
	shark -r "$file" -Y dsf -T fields -e dsf.cells -e dsf.cell.kind |
		awk '{ n = $2 == "" ? 0 : split($2, kinds, ","); if (n != $1) bad++ } END { exit bad > 0 }'
}

@test "a filter, and a file on stdout" {
	start b0-z0-h0:gpu0p0 -w - -- icmp6 and ip6[40] = 128
	ping_from_h0 -c 7 -i 0.01
	stop
	[ "$code" = 0 ]
	[ "$(frames "$BATS_TEST_TMPDIR/out")" = 7 ]
}

@test "the terminal shows frames as they come" {
	start b0-z0-h0:gpu0p0 -- icmp6
	ping_from_h0 -c 3 -i 0.01
	wait_for 5 grep -q "echo reply.* seq 3" "$BATS_TEST_TMPDIR/out"
	stop
	[ "$code" = 0 ]
	[ "$(grep -c "echo request" "$BATS_TEST_TMPDIR/out")" = 3 ]
}

@test "--json tells what was captured" {
	start b0-z0-h0:gpu0p0 -w "$BATS_TEST_TMPDIR/d.pcapng" --json
	ping_from_h0 -c 3 -i 0.01
	stop
	[ "$code" = 0 ]
	jq -e '.packets >= 6 and .kernel_drops == 0 and .interfaces == ["gpu0p0"]' \
		"$BATS_TEST_TMPDIR/out"
}

@test "SIGTERM ends a capture as Ctrl-C does, and leaves no process" {
	start b0-z0-h0:gpu0p0 -w "$BATS_TEST_TMPDIR/e.pcapng"
	tool=$(pgrep -P "$capture_pid" dumpcap)
	ping_from_h0 -c 3 -i 0.01
	kill -TERM "$capture_pid"
	wait "$capture_pid"
	capture_pid=
	[ "$(frames "$BATS_TEST_TMPDIR/e.pcapng")" -ge 6 ]
	run kill -0 "$tool"
	[ "$status" != 0 ]
}

@test "what can't be captured is refused" {
	run "$DSFEMU" capture nobody
	[ "$status" = 2 ]
	run "$DSFEMU" capture b0-z0-h0:eth7
	[ "$status" = 2 ]
	run "$DSFEMU" capture b0-z0-h0:gpu0p0 --json
	[ "$status" = 2 ]
	run "$DSFEMU" capture b0-z0-h0:gpu0p0 -w /nonexistent/file
	[ "$status" = 1 ]
	run "$DSFEMU" capture b0-z0-h0:gpu0p0 -w "$BATS_TEST_TMPDIR/f" -- not a filter at all
	[ "$status" = 1 ]
	[[ "$output" == *"filter"* ]]
	run env PATH=/nonexistent "$DSFEMU" capture b0-z0-h0:gpu0p0
	[ "$status" = 3 ]
	[[ "$output" == *"install the package tcpdump"* ]]
}

@test "MetaRoCE: what the hosts' transport sends is understood, every byte of it" {
	file="$BATS_TEST_TMPDIR/g.pcapng"
	# A receiver: the first half of the endpoints writes to the second.
	start b0-z0-h2 -w "$file"
	"$DSFEMU" run write --size 64K --iterations 4 --json >"$BATS_TEST_TMPDIR/run"
	stop
	[ "$code" = 0 ]
	roce() { shark -X "lua_script:$DSF_SOURCE/scripts/wireshark/metaroce.lua" -r "$file" "$@"; }
	[ "$(roce -Y 'metaroce.malformed || _ws.malformed' | tee /dev/stderr | wc -l)" = 0 ]
	for filter in "metaroce.type == 0 && metaroce.opcode == 0x0a" "metaroce.type == 1" \
		"metaroce.type == 3" "metaroce.plane == 0" "metaroce.plane == 1"; do
		echo "$filter"
		[ "$(roce -Y "$filter" | wc -l)" -gt 0 ]
	done
	# Checksums that senders leave to their NIC are real ones where the data arrives.
	[ "$(roce -o udp.check_checksum:TRUE -Y 'metaroce.type == 0 && udp.checksum.status != 1' |
		tee /dev/stderr | wc -l)" = 0 ]
}
