# compare: the same lab as a scheduled fabric and as a routed Clos, simulated.

bats_require_minimum_version 1.5.0

setup() {
	l2="$DSF_SOURCE/topologies/l2-zone.json"
	load_few="permutation --scope cross-zone --size 256K --iterations 4"
}

compare() {
	"$DSFEMU" compare "$@" --json
}

check() {
	if [ "$(jq "$2" <<<"$1")" != true ]; then
		echo "not true: $2"
		echo "$1"
		return 1
	fi
}

@test "a row for each fabric; cells are spread evenly, flows are not" {
	result=$(compare "$l2" --run "$load_few")
	check "$result" '[.[] | [.fabric, .state, .verified]] ==
		[["dsf", "healthy", true], ["ecmp", "healthy", true]]'
	# Every link between switches is counted, both ways.
	check "$result" 'all(.[]; [.links[] | [.tier, .direction, .links]] ==
		[["fabric", "up", 64], ["fabric", "down", 64], ["spine", "up", 64], ["spine", "down", 64]])'
	check "$result" 'all(.[]; .links | all(.bytes_max >= .bytes_mean and .bytes_mean > 0))'
	check "$result" 'all(.[]; .skew_fabric == ([.links[] | select(.tier == "fabric") | .skew] | max)
		and .skew_edge == null)'
	check "$result" '.[0].skew_fabric <= 1.05 and .[0].skew_spine <= 1.05'
	check "$result" '.[1].skew_fabric > .[0].skew_fabric and .[1].skew_spine > .[0].skew_spine'
	# What links carried is what the flows sent, with headers.
	check "$result" '.[1] | .report.bytes as $sent | .links[0] |
		.bytes_mean * .links > $sent and .bytes_mean * .links < $sent * 1.1'
}

@test "healthy and failed; one fabric alone; a table" {
	result=$(compare "$l2" --fabric dsf --run "$load_few" --fail b0-z0-p0-rdsw0:fab0)
	check "$result" '[.[] | [.fabric, .state, .verified]] ==
		[["dsf", "healthy", true], ["dsf", "failed", true]]'
	check "$result" '[.[1].links[].links] == [63, 63, 64, 64]'
	run "$DSFEMU" compare "$l2" --fabric dsf --run "$load_few"
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == FABRIC*TRANSPORT*LINKS*GOODPUT*"SKEW FABRIC"* ]]
	[ "${#lines[@]}" -eq 2 ]
}

@test "the same arguments give the same figures; a mode is the file's own" {
	a=$(compare "$l2" --fabric ecmp --run "$load_few")
	[ "$a" = "$(compare "$l2" --fabric ecmp --run "$load_few")" ]
	[ "$a" = "$(compare "$DSF_SOURCE/topologies/clos.json" --fabric ecmp --run "$load_few")" ]
	[ "$(jq -c '.[0].report | .goodput_bps, .retransmits' <<<"$a")" = "$("$DSFEMU" sim clos.json \
		--run "$load_few" --json | jq -c '.goodput_bps, .retransmits')" ]
}

@test "wrong use exits 2" {
	run -2 "$DSFEMU" compare "$l2" --fabric clos
	run -2 "$DSFEMU" compare "$l2" --transport rocev2
	[[ "$output" == *"this version"* ]]
	run -2 "$DSFEMU" compare "$l2" --transport tcp
	run -2 "$DSFEMU" compare "$l2" --fail b0-z0-p0-rdsw0:fab9
	run -2 "$DSFEMU" compare "$l2" --run frobnicate
	run -2 "$DSFEMU" compare "$l2" --seed x
	"$DSFEMU" expand "$l2" >"$BATS_TEST_TMPDIR/expanded.json"
	run -2 "$DSFEMU" compare "$BATS_TEST_TMPDIR/expanded.json" --fabric ecmp
	[[ "$output" == *"expanded.json"*mtu* ]]
}
