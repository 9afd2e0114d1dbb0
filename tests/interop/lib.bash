# Routers in namespaces around one bridge, with our speaker among them: bgp_speaker.c.
#
#   us 2001:db8:f::1   frr ::2   bird ::3   gobgp ::4   exabgp ::5
#
# All of a run lies in namespaces bgp-<pid>-NAME and one folder; net_down ends what was started, by
# pid. Each router announces 2001:db8:aaaa::/48 and 2001:db8:<its number>::/48.

SPEAKER=${BGP_SPEAKER:-$(dirname "${DSFEMU:-$BATS_TEST_DIRNAME/../../dsfemu}")/tests/interop/bgp_speaker}
NET=2001:db8:f

need()
{
	[ "$(id -u)" = 0 ] || skip "needs root"
	for word; do
		case $word in
		frr) [ -x /usr/lib/frr/bgpd ] || skip "frr is not installed" ;;
		*) command -v "$word" >/dev/null || skip "$word is not installed" ;;
		esac
	done
}

in_ns()
{
	local name=$1
	shift
	ip netns exec "$RUN-$name" "$@"
}

# begin CMD... in the namespace NAME, in the background; its pid is kept
begin()
{
	local name=$1
	shift
	ip netns exec "$RUN-$name" "$@" >>"$DIR/$name.log" 2>&1 3>&- & # its pid stays that of CMD
	echo $! >>"$DIR/pids"
}

net_up() # NAME...
{
	RUN=bgp-$$-$BATS_TEST_NUMBER
	DIR=$(mktemp -d)
	chmod 755 "$DIR"
	: >"$DIR/pids"
	ip netns add "$RUN-net"
	in_ns net ip link add bridge type bridge
	in_ns net ip link set bridge up
	for name; do
		ip netns add "$RUN-$name"
		in_ns net ip link add "$name" type veth peer name eth0 netns "$RUN-$name"
		in_ns net ip link set "$name" master bridge up
		in_ns "$name" sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.eth0.accept_dad=0
		in_ns "$name" ip link set lo up
		in_ns "$name" ip link set eth0 up
		in_ns "$name" ip address add "$NET::$(number "$name")/64" dev eth0 nodad
	done
}

net_down()
{
	local pid
	[ -n "${DIR:-}" ] || return 0
	for pid in $(cat "$DIR"/pids "$DIR"/*.pid 2>/dev/null); do
		kill "$pid" 2>/dev/null
	done
	for pid in $(cat "$DIR"/pids "$DIR"/*.pid 2>/dev/null); do
		for _ in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$pid" 2>/dev/null
	done
	for name in us frr bird gobgp exabgp tester net; do
		[ ! -e "/run/netns/$RUN-$name" ] || ip netns delete "$RUN-$name"
	done
	rm -rf "$DIR"
}

number()
{
	case $1 in
	us) echo 1 ;;
	frr) echo 2 ;;
	bird) echo 3 ;;
	gobgp) echo 4 ;;
	exabgp) echo 5 ;;
	tester) echo 9 ;;
	esac
}

# The AS of a router: its own, or ours where the test has set IBGP.
as_of()
{
	if [ -n "${IBGP:-}" ]; then echo 65000; else echo $((65000 + $(number "$1") - 1)); fi
}

# ---- us

us() # WORD...
{
	mkfifo "$DIR/control"
	begin us "$SPEAKER" as=65000 id=10.0.0.1 "local=$NET::1" "control=$DIR/control" "$@"
}

peer() # NAME[,WORD...] : the word for the speaker
{
	echo "peer=$NET::$(number "${1%%,*}"),as=$(as_of "${1%%,*}"),hold=30$(sed -n 's/[^,]*//;p' <<<"$1")"
}

tell()
{
	# a speaker that is gone doesn't read
	timeout 5 bash -c 'echo "$1" >"$2"' _ "$*" "$DIR/control"
}

# state FILTER : jq over the speaker's state
state()
{
	rm -f "$DIR/state"
	tell show "$DIR/state"
	for _ in $(seq 50); do
		[ ! -e "$DIR/state" ] || break
		sleep 0.05
	done
	jq -r "$1" "$DIR/state"
}

# until_is WANT CMD... : the command's output becomes WANT within 20 s
until_is()
{
	local want=$1 got
	shift
	for _ in $(seq 100); do
		got=$("$@" 2>/dev/null) || true
		[ "$got" != "$want" ] || return 0
		sleep 0.2
	done
	echo "$*: got '$got', want '$want'"
	return 1
}

peer_field() # NUMBER FIELD
{
	state ".peers[$1].$2"
}

paths_of() # PREFIX
{
	state "[.rows[] | select(.prefix == \"$1\")] | length"
}

# ---- them

frr_up() # LINE... for the neighbour, in its address family when they begin with "af "
{
	local line
	{
		echo "hostname frr"
		echo "router bgp $(as_of frr)"
		printf ' %s\n' "bgp router-id 10.0.0.2" "no bgp ebgp-requires-policy" \
			"no bgp network import-check" "no bgp default ipv4-unicast" "bgp graceful-restart" \
			"neighbor $NET::1 remote-as 65000" "neighbor $NET::1 timers 10 30" \
			"neighbor $NET::1 timers connect 1" "neighbor $NET::1 advertisement-interval 0"
		for line; do
			[ "${line#af }" != "$line" ] || echo " neighbor $NET::1 $line"
		done
		printf ' %s\n' "address-family ipv6 unicast" "neighbor $NET::1 activate" \
			"network 2001:db8:aaaa::/48" "network 2001:db8:2::/48"
		for line; do
			[ "${line#af }" = "$line" ] || echo " neighbor $NET::1 ${line#af }"
		done
	} >"$DIR/bgpd.conf"
	frr_start
}

frr_start() # with what is in bgpd.conf
{
	echo "hostname frr" >"$DIR/zebra.conf"
	mkdir "$DIR/frr"
	chown -R frr:frr "$DIR/frr" "$DIR/bgpd.conf" "$DIR/zebra.conf"
	in_ns frr /usr/lib/frr/zebra -f "$DIR/zebra.conf" -i "$DIR/frr/zebra.pid" -z "$DIR/frr/zserv.api" \
		--vty_socket "$DIR/frr" -P 0 --log "file:$DIR/frr/zebra.log" -d 3>&-
	in_ns frr /usr/lib/frr/bgpd -n -f "$DIR/bgpd.conf" -i "$DIR/frr/bgpd.pid" -z "$DIR/frr/zserv.api" \
		--vty_socket "$DIR/frr" -P 0 --log "file:$DIR/frr/bgpd.log" -d 3>&-
	cat "$DIR"/frr/*.pid >>"$DIR/pids"
}

vtysh_do()
{
	in_ns frr vtysh --vty_socket "$DIR/frr" "$@"
}

frr_paths() # PREFIX : how many paths FRR has of it
{
	vtysh_do -c "show bgp ipv6 unicast $1 json" | jq '.paths | length'
}

bird_up() # LINE... for the protocol; in its channel when they begin with "af "
{
	local line
	{
		echo "router id 10.0.0.3;"
		echo "protocol device {}"
		echo "protocol static one { ipv6; route 2001:db8:aaaa::/48 unreachable; route 2001:db8:3::/48 unreachable; }"
		echo "protocol static two { ipv6; route 2001:db8:3::/48 blackhole; }"
		echo "protocol bgp dut {"
		echo "local $NET::3 as $(as_of bird); neighbor $NET::1 as 65000; hold time 30;"
		echo "connect retry time 1; connect delay time 1; error wait time 1, 2;"
		for line; do
			[ "${line#af }" != "$line" ] || echo "$line;"
		done
		echo "ipv6 { import all; export all;"
		for line; do
			[ "${line#af }" = "$line" ] || echo "${line#af };"
		done
		echo "}; }"
	} >"$DIR/bird.conf"
	bird_start
}

bird_start()
{
	in_ns bird bird -c "$DIR/bird.conf" -s "$DIR/bird.ctl" -P "$DIR/bird.pid" 3>&-
	until_is 1 grep -c . "$DIR/bird.pid" # BIRD writes it in the background
	cat "$DIR/bird.pid" >>"$DIR/pids"
}

bird_do()
{
	birdc -s "$DIR/bird.ctl" "$@"
}

bird_paths() # PREFIX : how many paths BIRD has from us
{
	bird_do "show route protocol dut $1" | grep -c '\[dut '
}

gobgp_up() # LINE... for the neighbour's config
{
	{
		printf '%s\n' "[global.config]" "as = $(as_of gobgp)" 'router-id = "10.0.0.4"' \
			"local-address-list = [\"$NET::4\"]" "[[neighbors]]" "[neighbors.config]" \
			"neighbor-address = \"$NET::1\"" "peer-as = 65000" "$@" \
			"[neighbors.timers.config]" "connect-retry = 1" "hold-time = 30" \
			"keepalive-interval = 10" "idle-hold-time-after-reset = 1" \
			"[[neighbors.afi-safis]]" "[neighbors.afi-safis.config]" \
			'afi-safi-name = "ipv6-unicast"' "[neighbors.afi-safis.add-paths.config]" \
			"receive = true" "send-max = 255"
	} >"$DIR/gobgp.toml"
	gobgp_start
	gobgp_do global rib add -a ipv6 2001:db8:aaaa::/48
	gobgp_do global rib add -a ipv6 2001:db8:4::/48
}

gobgp_start()
{
	rm -f "$DIR/gobgp.sock"
	begin gobgp gobgpd -f "$DIR/gobgp.toml" --api-hosts "unix://$DIR/gobgp.sock" --pprof-disable --log-plain
	until_is 0 gobgp_ready
}

gobgp_ready()
{
	gobgp_do global >/dev/null
	echo $?
}

gobgp_do()
{
	gobgp --target "unix://$DIR/gobgp.sock" "$@"
}

gobgp_paths() # PREFIX
{
	gobgp_do global rib -a ipv6 "$1" | grep -c "$1"
}

exabgp_up() # LINE... for the neighbour
{
	{
		printf '%s\n' "neighbor $NET::1 {" "router-id 10.0.0.5;" "local-address $NET::5;" \
			"local-as $(as_of exabgp);" "peer-as 65000;" "hold-time 30;" \
			"family { ipv6 unicast; }" \
			"capability { add-path send/receive; route-refresh enable; }" "$@" \
			"static {" "route 2001:db8:aaaa::/48 next-hop $NET::5 path-information 0.0.0.9;"
		for i in 1 2 3; do
			echo "route 2001:db8:5::/48 next-hop $NET::5$i path-information 0.0.0.$i;"
		done
		echo "} }"
	} >"$DIR/exabgp.conf"
	begin exabgp env exabgp.daemon.user=root exabgp.api.cli=false exabgp "$DIR/exabgp.conf"
}
