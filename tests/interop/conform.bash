# Targets of the conformance suite (conform.c), each in its namespace, with the neighbours that the
# suite plays: conform_up TARGET, conform_run TARGET [WORD]..., and what the suite asks for by its
# hook. The suite is in the namespace "tester", on the bridge of lib.bash.

CONFORM=${CONFORM:-$(dirname "$SPEAKER")/conform}
CONFORM_DIR=$(dirname "${BASH_SOURCE[0]}")

# All neighbours: the end of the address, AS, and what is special.
neighbours()
{
	local i
	for i in $(seq 32); do printf 'e:%x 65100 passive\n' "$i"; done
	for i in $(seq 4); do echo "1:$i 65000 passive"; done
	echo "a 4200000100 passive"
	echo "b 65000 passive"
	echo "c 65100 active"
	echo "d 65100 limited"
	for i in $(seq 3); do echo "f:$i 65100 passive"; done
}

conform_net() # TARGET
{
	net_up "$1" tester
	neighbours | while read -r end _; do
		echo "address add $NET::$end/64 dev eth0 nodad"
	done | in_ns tester ip -batch -
	in_ns tester ip address add "$NET::d:1/64" dev eth0 nodad
	cat >"$DIR/hook" <<-END
		#!/bin/bash
		RUN=$RUN DIR=$DIR
		. "$CONFORM_DIR/lib.bash" && . "$CONFORM_DIR/conform.bash"
		${1}_hook "\$@" >>"$DIR/hook.log" 2>&1
	END
	chmod +x "$DIR/hook"
}

conform_up() # TARGET
{
	conform_net "$1"
	"${1}_target"
}

conform_run() # TARGET WORD...
{
	local target=$1
	shift
	in_ns tester "$CONFORM" "target=$NET::$(number "$target")" "name=$target" "hook=$DIR/hook" \
		"scores=$DIR/scores" "$@"
}

# ---- dsfemu's core

us_target()
{
	local end as kind words=()
	while read -r end as kind; do
		case $kind in
		limited) kind=passive,max=5,idle=1 ;;
		active) kind=retry=1000 ;;
		esac
		words+=("peer=$NET::$end,as=$as,$kind,hold=90,add-path=3")
	done < <(neighbours)
	us "${words[@]}"
}

us_hook() # WHAT ADDRESS [TEXT]
{
	local index
	index=$(neighbours | while read -r end _; do echo "$NET::$end"; done | grep -nx "$2" | cut -d: -f1)
	case $1 in
	shutdown) tell stop $((index - 1)) "$3" ;;
	enable) tell start $((index - 1)) ;;
	reset) tell reset $((index - 1)) ;;
	restart) return 1 ;;
	esac
}

# ---- FRR

frr_target()
{
	local end as kind
	{
		printf '%s\n' "hostname frr" "router bgp 65000" " bgp router-id 10.0.0.2" \
			" no bgp ebgp-requires-policy" " no bgp network import-check" \
			" no bgp default ipv4-unicast" " bgp graceful-restart"
		neighbours | while read -r end as kind; do
			printf ' neighbor %s %s\n' "$NET::$end" "remote-as $as" "$NET::$end" "timers 30 90" \
				"$NET::$end" "timers connect 1" "$NET::$end" "advertisement-interval 0"
			[ "$kind" = active ] || echo " neighbor $NET::$end passive"
		done
		echo " address-family ipv6 unicast"
		neighbours | while read -r end as kind; do
			printf '  neighbor %s %s\n' "$NET::$end" activate "$NET::$end" addpath-tx-all-paths
			[ "$kind" != limited ] || echo "  neighbor $NET::$end maximum-prefix 5"
		done
	} >"$DIR/bgpd.conf"
	frr_start
}

frr_hook()
{
	local at="router bgp 65000"
	case $1 in
	shutdown) vtysh_do -c "configure terminal" -c "$at" -c "neighbor $2 shutdown message $3" ;;
	enable) vtysh_do -c "configure terminal" -c "$at" -c "no neighbor $2 shutdown" ;;
	reset) vtysh_do -c "clear bgp $2" ;;
	restart) return 1 ;;
	esac
}

# ---- BIRD

bird_name() # ADDRESS
{
	echo "n_$(tr : _ <<<"${1#"$NET"::}")"
}

bird_target()
{
	local end as kind more
	{
		printf '%s\n' "router id 10.0.0.3;" "protocol device {}" "protocol direct { ipv6; }" \
			"template bgp any { local $NET::3 as 65000; hold time 90; connect retry time 1;" \
			"connect delay time 1; error wait time 1, 2; enable extended messages on;" \
			"ipv6 { import all; export all; add paths on; }; }"
		while read -r end as kind; do
			more="passive on;"
			[ "$kind" != active ] || more=
			[ "$kind" != limited ] ||
				more="passive on; ipv6 { import all; export all; import limit 5 action restart; };"
			echo "protocol bgp $(bird_name "$NET::$end") from any { neighbor $NET::$end as $as; $more }"
		done < <(neighbours)
	} >"$DIR/bird.conf"
	bird_start
}

bird_hook()
{
	case $1 in
	shutdown) bird_do disable "$(bird_name "$2")" "\"$3\"" ;;
	enable) bird_do enable "$(bird_name "$2")" ;;
	reset) bird_do restart "$(bird_name "$2")" ;;
	restart) return 1 ;;
	esac
}

# ---- GoBGP

gobgp_target()
{
	local end as kind
	{
		printf '%s\n' "[global.config]" "as = 65000" 'router-id = "10.0.0.4"' \
			"local-address-list = [\"$NET::4\"]"
		while read -r end as kind; do
			printf '%s\n' "[[neighbors]]" "[neighbors.config]" "neighbor-address = \"$NET::$end\"" \
				"peer-as = $as" "[neighbors.timers.config]" "connect-retry = 1" \
				"hold-time = 90" "keepalive-interval = 30" "idle-hold-time-after-reset = 1" \
				"[neighbors.graceful-restart.config]" "enabled = true" "restart-time = 120" \
				"[neighbors.transport.config]" "passive-mode = $([ "$kind" = active ] && echo false || echo true)" \
				"[[neighbors.afi-safis]]" "[neighbors.afi-safis.config]" \
				'afi-safi-name = "ipv6-unicast"' "[neighbors.afi-safis.add-paths.config]" \
				"receive = true" "send-max = 255" "[neighbors.afi-safis.mp-graceful-restart.config]" \
				"enabled = true"
			[ "$kind" != limited ] ||
				printf '%s\n' "[neighbors.afi-safis.prefix-limit.config]" "max-prefixes = 5"
		done < <(neighbours)
	} >"$DIR/gobgp.toml"
	gobgp_start
}

gobgp_hook()
{
	case $1 in
	shutdown) gobgp_do neighbor "$2" shutdown --reason "$3" ;;
	enable) gobgp_do neighbor "$2" enable ;;
	reset) gobgp_do neighbor "$2" reset ;;
	restart) ! kill -0 "$(tail -n 1 "$DIR/pids")" && gobgp_start ;;
	esac
}
