# Live labs with routers that aren't ours, as external nodes behind the edge switch of bird.json:
#
#   bird AS 65001 2001:db8:b1::/48   frr 65002 ...:f1::   gobgp 65003 ...:60::   exabgp 65004 ...:e1::
#
# Each has the address ::1 of its prefix on lo, and is at a port of edsw0 of its own.

need()
{
	command -v jq >/dev/null || skip "jq is not installed"
	for word; do
		case $word in
		frr) [ -x /usr/lib/frr/bgpd ] || skip "frr is not installed" ;;
		*) command -v "$word" >/dev/null || skip "$word is not installed" ;;
		esac
	done
}

up() # FILE
{
	dsf up "$1" --name "$LAB" --quiet
}

folder()
{
	echo "/run/dsfemu/$LAB/node/$1"
}

# comes WHAT CONDITION : until the condition holds of what is shown; else says what was
comes()
{
	local result
	for _ in $(seq 150); do
		# shellcheck disable=SC2086 # words
		result=$(dsf show $1 --lab "$LAB" --json) || return 1
		! jq -e "$2" <<<"$result" >/dev/null || return 0
		sleep 0.2
	done
	jq -c '.[]' <<<"$result"
	return 1
}

# until_is WANT CMD... : the command's output becomes WANT within 30 s
until_is()
{
	local want=$1 got
	shift
	for _ in $(seq 150); do
		got=$("$@" 2>/dev/null) || true
		[ "$got" != "$want" ] || return 0
		sleep 0.2
	done
	echo "$*: got '$got', want '$want'"
	return 1
}

reaches() # NODE ADDRESS
{
	timeout 20 "$DSFEMU" exec "$1" --lab "$LAB" -- ping -6 -q -c 2 -i 0.2 -W 2 "$2" | grep " 0% packet loss"
}

kernel_routes() # NODE PATTERN
{
	dsf exec "$1" --lab "$LAB" -- ip -6 route show | grep -c "^$2"
}

# ---- labs

# The external node of a router behind edsw0:ethN. In: its number; out: JSON
router_node() # ROUTER NUMBER
{
	local us=fd5f:0:ff00:$2 us_as=4200000000 as=$((65001 + $2)) file
	[ "$2" = 0 ] && us=fd5f:0:ff00 || us=fd5f:0:ff00:${2}00
	[ -z "${IBGP:-}" ] || as=$us_as
	file=$BATS_TEST_TMPDIR/router
	mkdir -p "$file"
	rm -f "$file"/*
	"$1_files" "$us" "$us_as" "$as" "$file"
	jq -n --arg name "$1" '{ name: $name, role: "external", command: ["sh", "start.sh"],
		files: [inputs] | add }' <(for name in "$file"/*; do
		jq -R . "$name" | jq -s --arg name "$(basename "$name")" '{ ($name): . }'
	done)
}

bird_files()
{
	cat >"$4/start.sh" <<-END
		ip -6 address replace 2001:db8:b1::1/128 dev lo
		[ ! -e bird.ctl ] || again=-R # it restarts: what the kernel has stays
		rm -f bird.ctl
		exec bird -f \$again -c bird.conf -s bird.ctl
	END
	cat >"$4/bird.conf" <<-END
		log stderr all;
		router id 10.0.1.1;
		protocol device {}
		protocol kernel { graceful restart on; ipv6 { import none; export where source = RTS_BGP; }; }
		protocol static own { ipv6; route 2001:db8:b1::/48 unreachable; }
		protocol bgp edsw0 {
		  local $1::2 as $3; neighbor $1::1 as $2;
		  connect retry time 1; connect delay time 1; error wait time 1, 2;
		  graceful restart on; graceful restart time 60; check link off;
		  ipv6 { import all; export all; };
		}
	END
}

frr_files()
{
	cat >"$4/start.sh" <<-END
		ip -6 address replace 2001:db8:f1::1/128 dev lo
		mkdir -p run && chown frr:frr run || exit 1
		with="--vty_socket \$PWD/run -z \$PWD/run/zserv.api -P 0 --log stdout"
		/usr/lib/frr/zebra -d -f \$PWD/zebra.conf -i \$PWD/run/zebra.pid \$with || exit 1
		exec /usr/lib/frr/bgpd -f \$PWD/bgpd.conf -i \$PWD/run/bgpd.pid \$with
	END
	echo "hostname frr" >"$4/zebra.conf"
	cat >"$4/bgpd.conf" <<-END
		hostname frr
		router bgp $3
		 bgp router-id 10.0.1.2
		 no bgp ebgp-requires-policy
		 no bgp network import-check
		 no bgp default ipv4-unicast
		 bgp graceful-restart
		 no bgp fast-external-failover
		 neighbor $1::1 remote-as $2
		 neighbor $1::1 timers connect 1
		 neighbor $1::1 advertisement-interval 0
		 address-family ipv6 unicast
		  neighbor $1::1 activate
		  network 2001:db8:f1::/48
	END
}

gobgp_files()
{
	cat >"$4/start.sh" <<-END
		ip -6 address replace 2001:db8:60::1/128 dev lo
		ip -6 route replace fd5f::/32 via $1::1 # it has no FIB
		until gobgp --target unix://\$PWD/api.sock global rib add -a ipv6 2001:db8:60::/48; do
		  sleep 0.2
		done >/dev/null 2>&1 &
		exec gobgpd -f gobgp.toml --api-hosts unix://\$PWD/api.sock --pprof-disable --log-plain
	END
	cat >"$4/gobgp.toml" <<-END
		[global.config]
		as = $3
		router-id = "10.0.1.3"
		local-address-list = ["$1::2"]
		[[neighbors]]
		[neighbors.config]
		neighbor-address = "$1::1"
		peer-as = $2
		[neighbors.timers.config]
		connect-retry = 1
		idle-hold-time-after-reset = 1
		[[neighbors.afi-safis]]
		[neighbors.afi-safis.config]
		afi-safi-name = "ipv6-unicast"
	END
}

exabgp_files()
{
	cat >"$4/start.sh" <<-END
		ip -6 address replace 2001:db8:e1::1/128 dev lo
		exec env exabgp.daemon.user=root exabgp.api.cli=false exabgp exabgp.conf
	END
	cat >"$4/exabgp.conf" <<-END
		neighbor $1::1 {
		  router-id 10.0.1.4;
		  local-address $1::2;
		  local-as $3;
		  peer-as $2;
		  family { ipv6 unicast; }
		  static { route 2001:db8:e1::/48 next-hop $1::2; }
		}
	END
}

# routers CHANGE ROUTER... : LAB_FILE is bird.json with these at edsw0; CHANGE of its neighbours
routers()
{
	local change=$1 number=0 router nodes
	shift
	LAB_FILE=$BATS_TEST_TMPDIR/lab.json
	nodes=$BATS_TEST_TMPDIR/nodes
	: >"$nodes"
	for router; do
		router_node "$router" $number >>"$nodes"
		number=$((number + 1))
	done
	jq --slurpfile routers "$nodes" --arg ibgp "${IBGP:-}" '
		def neighbors: [range($routers | length) | {
			address: (if . == 0 then "fd5f:0:ff00::2" else "fd5f:0:ff00:\(.)00::2" end),
			asn: (if $ibgp != "" then 4200000000 else 65001 + . end) }];
		.links |= map(select(.b != "bird:eth0")) + [$routers | to_entries[] |
			{ a: "edsw0:eth\(.key)", b: "\(.value.name):eth0" }] |
		.nodes |= map(select(.name != "bird")) + $routers |
		(.nodes[] | select(.name == "edsw0").bgp.neighbors) = (neighbors | '"${change:-.}"')' \
		"$SOURCE/topologies/bird.json" >"$LAB_FILE"
}

change() # FILTER : of the whole file
{
	jq "$1" "$LAB_FILE" >"$LAB_FILE.new"
	mv "$LAB_FILE.new" "$LAB_FILE"
}

# ---- routers: how many paths of a prefix they have from us or of their own; what they tell

bird_paths()
{
	birdc -s "$(folder bird)/bird.ctl" show route "$1" | grep -c '\['
}

# The static routes of bird.json, and of ours.
bird_withdraw()
{
	birdc -s "$(folder bird)/bird.ctl" disable static1 || true
	birdc -s "$(folder bird)/bird.ctl" disable own || true
}

bird_announce()
{
	birdc -s "$(folder bird)/bird.ctl" enable static1 || true
	birdc -s "$(folder bird)/bird.ctl" enable own || true
}

frr_do() # COMMAND...
{
	local words=()
	for word; do
		words+=(-c "$word")
	done
	vtysh --vty_socket "$(folder frr)/run" "${words[@]}"
}

frr_paths()
{
	frr_do "show bgp ipv6 unicast $1 json" | jq '.paths // [] | length'
}

frr_stale()
{
	frr_do "show bgp ipv6 unicast $1 json" | jq '[.paths[].stale // false] | any'
}

frr_withdraw()
{
	frr_do "configure terminal" "router bgp 65002" "address-family ipv6 unicast" \
		"no network 2001:db8:f1::/48"
}

frr_announce()
{
	frr_do "configure terminal" "router bgp 65002" "address-family ipv6 unicast" \
		"network 2001:db8:f1::/48"
}

gobgp_paths()
{
	gobgp --target "unix://$(folder gobgp)/api.sock" global rib -a ipv6 "$1" | grep -c "$1"
}

# FRR processes in the lab's namespace, or with its mark.
daemons()
{
	marked "$LAB" | xargs -r ps -o stat=,comm= -p | grep -v '^Z' | grep -cE ' (zebra|bgpd)$'
}

# ---- captures: what edsw0 and its routers say to each other

capture()
{
	CAPTURES=()
	for number in 0 1 2 3; do
		ip netns exec "$LAB-edsw0" tcpdump -U -i eth$number -w "$PCAP.$number" tcp port 179 \
			2>/dev/null 3>&- &
		CAPTURES+=("$!")
		wait_until 20 test -s "$PCAP.$number" # it hears
	done
}

# What switch and router said at that port: at least a withdrawal came after the capture began.
heard() # NUMBER
{
	[ "$(tshark -r "$PCAP.$1" -Y bgp 2>/dev/null | wc -l)" -gt 0 ]
}

no_malformed()
{
	for number in 0 1 2 3; do
		wait_until 20 heard $number
	done
	kill "${CAPTURES[@]}"
	wait "${CAPTURES[@]}" || true
	for number in 0 1 2 3; do
		[ "$(tshark -r "$PCAP.$number" -Y "_ws.malformed || (bgp && _ws.expert.severity == error)" 2>/dev/null)" = "" ]
	done
}
