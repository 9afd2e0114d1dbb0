#!/usr/bin/env bats
# exec and shell: the command's own code, descriptors, signals, environment.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	[ "$(id -u)" = 0 ] || return 0
	LAB=$(lab_name ex)
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

in_host()
{
	dsf exec b0-z0-h0 --lab "$LAB" -- "$@"
}

@test "codes: the command's own, 125, 126, 127, 128+N" {
	for code in 0 1 42 255; do
		run in_host sh -c "exit $code"
		[ "$status" -eq $code ]
	done
	run -127 in_host no-such-command
	[ "$status" -eq 127 ]
	run in_host /etc/passwd
	[ "$status" -eq 126 ]
	run in_host /
	[ "$status" -eq 126 ]
	run dsf exec no-such-node --lab "$LAB" -- true
	[ "$status" -eq 125 ]
	run dsf exec ../x --lab "$LAB" -- true
	[ "$status" -eq 125 ]
	run dsf exec b0-z0-h0 --lab nolab -- true
	[ "$status" -eq 125 ]
	run dsf exec b0-z0-h0 --lab "$LAB"
	[ "$status" -eq 125 ]
	run bash -c "'$DSFEMU' exec b0-z0-h0 --lab '$LAB' -- sh -c 'kill -TERM \$\$'"
	[ "$status" -eq 143 ]
}

@test "the command is the process: a signal to it is a signal to the command" {
	"$DSFEMU" exec b0-z0-h0 --lab "$LAB" -- sleep 1000 3>&- &
	pid=$!
	wait_until 5 grep -qx sleep /proc/$pid/comm
	kill -USR1 $pid
	code=0
	wait $pid || code=$?
	[ $code -eq 138 ]
}

@test "stdin, stdout and stderr are ours" {
	[ "$(echo hello | in_host cat)" = hello ]
	[ "$(in_host sh -c 'echo out; echo err >&2' 2>/dev/null)" = out ]
	[ "$(in_host sh -c 'echo out; echo err >&2' 2>&1 >/dev/null)" = err ]
	in_host test ! -t 0 </dev/null
}

@test "a terminal stays a terminal" {
	command -v script >/dev/null || skip "no script"
	run script -qec "'$DSFEMU' exec b0-z0-h0 --lab '$LAB' -- test -t 0" /dev/null
	[ "$status" -eq 0 ]
}

@test "words and options behind -- are the command's" {
	[ "$(in_host echo --json -v --lab x -- y)" = "--json -v --lab x -- y" ]
	[ "$(in_host printf '%s|' 'a b' '' '*')" = "a b||*|" ]
}

@test "it is in the node's namespace, and says which" {
	[ "$(in_host printenv DSFEMU_LAB)" = "$LAB" ]
	[ "$(in_host printenv DSFEMU_NODE)" = b0-z0-h0 ]
	[ "$(in_host readlink /proc/self/ns/net)" = "$(ip netns exec "$LAB-b0-z0-h0" readlink /proc/self/ns/net)" ]
	in_host test -e /sys/class/net/gpu0p0
	[ "$(in_host ip -j link show | jq 'length')" -eq 5 ]
	for node in b0-z0-p0-rdsw0 b0-z0-p1-fdsw1; do
		dsf exec $node --lab "$LAB" -- true
	done
}

@test "SIGPIPE works inside as it does outside" {
	run bash -c "'$DSFEMU' exec b0-z0-h0 --lab '$LAB' -- yes | head -n 1"
	[ "$status" -eq 0 ]
	[ "$output" = y ]
}

@test "shell runs SHELL in the node" {
	run bash -c "echo 'echo \$DSFEMU_NODE; exit 7' | SHELL=/bin/sh '$DSFEMU' shell b0-z0-h2 --lab '$LAB'"
	[ "$status" -eq 7 ]
	[[ "$output" == *b0-z0-h2* ]]
}

@test "switch ports have no kernel IPv6, hosts have what they need" {
	for node in b0-z0-p0-rdsw0 b0-z0-p0-fdsw0; do
		[ -z "$(dsf exec $node --lab "$LAB" -- ip -6 -o addr show dev fab0)" ]
	done
	in_host ip -6 rule show | grep -q "from $(address "$LAB" b0-z0-h0 gpu0p0) lookup"
	in_host ip -6 neigh show nud permanent | grep -q gpu0p0
	in_host ip -6 route show | grep -q '^fd5f::/24 via .* dev gpu0p0'
	in_host ip -6 route show | grep -q '^fd5f:100::/24 via .* dev gpu0p1'
	in_host tc qdisc show dev gpu0p0 | grep -q 'tbf.*overhead 24'
	[ "$(in_host cat /proc/sys/net/ipv6/conf/gpu0p0/keep_addr_on_down)" = 1 ]
	[ "$(in_host cat /proc/sys/net/ipv6/conf/gpu0p0/accept_ra)" = 0 ]
	in_host ip -d -j link show gpu0p0 | jq -e '.[0].gso_max_segs == 1 and .[0].mtu == 9000 and
		.[0].num_tx_queues == 1'
	# Ends of a pair never have the same index: see netns/netns.h.
	in_host ip -j link show | jq -e 'all(.[] | select(.link_index); .ifindex != .link_index)'
}
