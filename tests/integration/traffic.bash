# What the tests of kernel traffic and of captures share: one lab, and ways to look at it.
#
# A test file's setup_file calls traffic_up FILE, its teardown_file traffic_down. Everything the
# lab makes has its name, which holds our process id, so that two runs never meet.

traffic_need()
{
	[ "$(id -u)" = 0 ] || skip "needs root"
	for tool in jq "$@"; do
		command -v "$tool" >/dev/null || skip "needs $tool"
	done
}

# traffic_up FILE NAME [DILATION]
traffic_up()
{
	export DSFEMU_LAB="$2_$$"
	export TRAFFIC_TOPOLOGY="$BATS_FILE_TMPDIR/lab.json"
	"$DSFEMU" expand "$1" >"$TRAFFIC_TOPOLOGY.all" || return 1
	# One NIC port with a smaller MTU, for Packet Too Big.
	jq '(.links[] | select(.a == "b0-z0-h3:gpu1p1") | .mtu) = 4500' \
		"$TRAFFIC_TOPOLOGY.all" >"$TRAFFIC_TOPOLOGY" || return 1
	"$DSFEMU" up "$TRAFFIC_TOPOLOGY" --name "$DSFEMU_LAB" ${3:+--time-dilation "$3"} \
		--json >"$BATS_FILE_TMPDIR/up.json"
}

traffic_down()
{
	[ -n "${DSFEMU_LAB:-}" ] || return 0
	"$DSFEMU" down "$DSFEMU_LAB" --kill >/dev/null
}

# in_node NODE COMMAND... : runs it in the node's namespace
in_node()
{
	local node=$1
	shift
	"$DSFEMU" exec "$node" -- "$@"
}

# address NODE IF : its global IPv6 address
address()
{
	in_node "$1" ip -j -6 address show dev "$2" scope global |
		jq -er '.[0].addr_info[] | select(.scope == "global") | .local'
}

# loopback SWITCH : its address on the host port, the one whose last port byte is ff
loopback()
{
	in_node "$1" ip -j -6 address show dev inband0 scope global |
		jq -er '[.[].addr_info[] | .local // empty | select(test("ff00::1$"))][0]'
}

# kernel_frames NODE IF : frames in and out so far, as the kernel counts
kernel_frames()
{
	in_node "$1" ip -j -s link show dev "$2" | jq -er '.[0].stats64 | .rx.packets + .tx.packets'
}

hosts()
{
	jq -er '.nodes[] | select(.role == "host") | .name' "$TRAFFIC_TOPOLOGY"
}

# wait_for SECONDS COMMAND... : until it succeeds
wait_for()
{
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}
