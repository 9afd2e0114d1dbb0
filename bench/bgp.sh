#!/bin/bash
#
# bgp.sh - what routes cost our BGP core, BIRD and FRR, each fed by the same sender, in one run
#
# usage: bench/bgp.sh [us|bird|frr]... (LOADS="128 2000,100000 0": only these prefixes and path ids)
#
# Needs root, and BENCH_DIR (bgp_feed) and DSFEMU as `make bench` gives them. Each speaker has
# one iBGP session with bench/bgp_feed.c in namespaces of its own: 128 prefixes with 500, 1,000 and
# 2,000 path ids of each, and 100,000 plain prefixes. Prints one JSON object: each measurement with
# its speaker, and what our core is asked for: seconds of CPU time at most 1 for 256,000 paths (BIRD
# and FRR beside it), in proportion to the paths, in at most twice BIRD's memory, and plain prefixes
# in at most 1.5 times BIRD's time.
set -u
cd "$(dirname "$0")/.." || exit 2
BATS_TEST_NUMBER=bench
. tests/interop/lib.bash

feed=${BENCH_DIR:-$PWD/bench}/bgp_feed
trap net_down EXIT
trap 'exit 130' INT TERM

speaker_up() # SPEAKER
{
	case $1 in
	us) us "peer=$NET::9,as=65000,passive,hold=0,add-path=3" ;;
	frr)
		printf '%s\n' "hostname frr" "router bgp 65000" " bgp router-id 10.0.0.2" \
			" no bgp default ipv4-unicast" " neighbor $NET::9 remote-as 65000" \
			" neighbor $NET::9 passive" " address-family ipv6 unicast" \
			"  neighbor $NET::9 activate" >"$DIR/bgpd.conf"
		frr_start
		;;
	bird)
		printf '%s\n' "router id 10.0.0.3;" "protocol device {}" "protocol direct { ipv6; }" \
			"protocol bgp feeder { local $NET::3 as 65000; neighbor $NET::9 as 65000; passive on;" \
			"hold time 240; error wait time 1, 2; ipv6 { import all; export none; add paths rx; }; }" \
			>"$DIR/bird.conf"
		bird_start
		;;
	esac
}

speaker_pid()
{
	case $1 in
	us) head -n 1 "$DIR/pids" ;;
	frr) cat "$DIR/frr/bgpd.pid" ;;
	bird) cat "$DIR/bird.pid" ;;
	esac
}

count_command()
{
	case $1 in
	us)
		echo "rm -f $DIR/state; echo peers $DIR/state >$DIR/control;" \
			"until [ -e $DIR/state ]; do sleep 0.01; done; jq .peers[0].paths $DIR/state"
		;;
	frr)
		echo "ip netns exec $RUN-frr vtysh --vty_socket $DIR/frr -c 'show bgp ipv6 unicast summary json' |" \
			"jq '[.peers[]?.pfxRcd // 0] | add // 0'"
		;;
	bird)
		echo "birdc -s $DIR/bird.ctl show route protocol feeder count | sed -n 's/^\\([0-9]*\\) of.*/\\1/p'"
		;;
	esac
}

measure() # SPEAKER PREFIXES PATHS
{
	net_up "$1" tester >&2 || return 1
	speaker_up "$1" >&2 || return 1
	in_ns tester "$feed" "target=$NET::$(number "$1")" "local=$NET::9" as=65000 \
		"pid=$(speaker_pid "$1")" "count=$(count_command "$1")" "prefixes=$2" "paths=$3" |
		jq -c --arg speaker "$1" '{speaker: $speaker} + .'
	net_down
}

[ "$(id -u)" = 0 ] && [ -x "$feed" ] && [ -x "$SPEAKER" ] || { echo "bgp.sh: run make bench, as root" >&2 && exit 1; }
[ $# -gt 0 ] || set -- us bird frr
IFS=, read -ra loads <<<"${LOADS:-128 500,128 1000,128 2000,100000 0}"
for speaker; do
	for load in "${loads[@]}"; do
		measure "$speaker" $load
	done
done | jq -sc '
	def of($s; $p; $r): map(select(.speaker == $s and .prefixes == $p and .routes == $r))[0];
	def ratio($a; $b): if $a and $b and $b > 0 then $a / $b * 100 | round / 100 else null end;
	of("us"; 128; 256000) as $ours | of("bird"; 128; 256000) as $bird |
	of("us"; 100000; 100000) as $plain | of("bird"; 100000; 100000) as $bird_plain |
	{row: "bgp", measured: ., most_cpu_s: ([$ours | .absorb, .withdraw, .loss | .cpu_s] | max),
	cost_of_path_at_2000_times_500: (ratio($ours.absorb.cpu_s; of("us"; 128; 64000).absorb.cpu_s) | if . then . / 4 else null end),
	memory_times_bird: ratio($ours.memory_mb; $bird.memory_mb),
	plain_absorb_times_bird: ratio($plain.absorb.cpu_s; $bird_plain.absorb.cpu_s)}'
