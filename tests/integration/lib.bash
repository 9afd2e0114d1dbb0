# What the tests of live labs share. They need root and skip without it. Every lab's name starts
# with a prefix of this run's own, so that runs side by side don't meet.

DSFEMU=${DSFEMU:-$BATS_TEST_DIRNAME/../../dsfemu}
SOURCE=${DSF_SOURCE:-$BATS_TEST_DIRNAME/../..}
MINI=$SOURCE/topologies/mini.json

need_root()
{
	[ "$(id -u)" = 0 ] || skip "needs root"
}

# A lab name that nobody else uses: PREFIX<pid>.
lab_name()
{
	echo "$1$$"
}

dsf()
{
	timeout 60 "$DSFEMU" "$@"
}

# Pids that have the lab's mark in their environment.
marked()
{
	grep -lzx "DSFEMU_LAB=$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
	return 0
}

supervisor_pid()
{
	cat "/run/dsfemu/$1/lock"
}

node_pid()
{
	awk -v node="$2" '$3 == node { print $1 }' "/run/dsfemu/$1/pids"
}

# Nothing of the lab is left: no name, no state, no marked process.
nothing_left()
{
	local lab=$1 left

	left=$(find /run/netns -maxdepth 1 -name "$lab-*" 2>/dev/null)
	if [ -n "$left" ]; then
		echo "names left: $left"
		return 1
	fi
	if [ -e "/run/dsfemu/$lab" ]; then
		echo "state left: $(find "/run/dsfemu/$lab")"
		return 1
	fi
	left=$(marked "$lab")
	if [ -n "$left" ]; then
		echo "processes left: $left"
		return 1
	fi
	return 0
}

# Waits until a command succeeds; SECONDS is wall time.
wait_until()
{
	local seconds=$1 end

	shift
	end=$((SECONDS + seconds))
	until "$@" >/dev/null 2>&1; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "still not after $seconds s: $*"
			return 1
		fi
		sleep 0.05
	done
}

# The first global IPv6 address of a host's port.
address()
{
	dsf exec "$2" --lab "$1" -- ip -6 -j addr show dev "$3" |
		jq -r '.[0].addr_info[] | select(.scope == "global") | .local'
}

# What must not change in the root namespace.
root_state()
{
	ip -o link show
	ip rule show
	ip -6 rule show
	ip -6 route show
	cat /proc/sys/net/ipv6/neigh/default/gc_thresh3 /proc/sys/net/ipv6/conf/all/forwarding \
		/proc/sys/net/ipv6/conf/default/disable_ipv6
	find /run -maxdepth 1 ! -name dsfemu ! -name netns | sort
}
