# The simulator from the command line: no root, no clock, the same answer every time.

bats_require_minimum_version 1.5.0

setup() {
	mini="$DSF_SOURCE/topologies/mini.json"
	zone="$DSF_SOURCE/topologies/l1-zone.json"
}

sim() {
	"$DSFEMU" sim "$@" --json
}

# check RUN-JSON FILTER: the filter says true
check() {
	if [ "$(jq "$2" <<<"$1")" != true ]; then
		echo "not true: $2"
		echo "$1"
		return 1
	fi
}

@test "a lab converges" {
	result=$(sim "$mini")
	check "$result" '.ready and .frames > 0'
}

@test "show fabric: how far a switch is overdrained" {
	result=$(sim "$mini" --fail b0-z0-p0-rdsw0:fab0 --show fabric)
	check "$result" '[.[] | select(.overdrain_percent > 0) | .node] == ["b0-z0-p0-rdsw0"]'
	# 800G of ports need 853.4G of fabric; 445G are left
	check "$result" '.[] | select(.node == "b0-z0-p0-rdsw0") | .overdrain_percent == 52'
}

@test "FSDB: all pairs of a plane have a session, each knows all neighbours" {
	check "$(sim "$mini")" '.sessions == {"fsdb": {"established": 24, "expected": 24},
		"bgp": {"established": 0, "expected": 0}}'
	result=$(sim "$mini" --show "dsf subscription")
	check "$result" 'length == 24 and all(.[]; .state == "ESTABLISHED" and .liveness == "LIVE")'
	check "$result" 'all(.[]; .node != .peer) and (map([.node, .peer]) | unique | length == 24)'
	result=$(sim "$mini" --show ndp)
	check "$result" '[.[] | select(.state == "reachable")] | group_by(.node) |
		length == 8 and all(.[]; length == 8 and (map(select(.scope == "local")) | length) == 2)'
	result=$(sim "$mini" --show fsdb)
	check "$result" '[.[] | select(.kind == "neighbor")] | length == 64 and
		all(.[]; .state == "reachable" and .liveness == "LIVE")'
}

@test "FSDB: a port that is down keeps its own switch's entry only" {
	result=$(sim "$mini" --fail b0-z0-h0:gpu0p0 --show ndp)
	check "$result" '[.[] | select(.state == "incomplete")] | length == 1 and .[0].scope == "local"'
	check "$result" '[.[] | select(.state == "reachable")] | length == 60'
}

@test "the same seed is the same run, another one is not" {
	a=$(sim "$mini" --run "permutation --size 256K" | jq -r .trace_hash)
	b=$(sim "$mini" --run "permutation --size 256K" | jq -r .trace_hash)
	c=$(sim "$mini" --seed 2 --run "permutation --size 256K" | jq -r .trace_hash)
	[ "$a" = "$b" ]
	[ "$a" != "$c" ]
}

@test "write: every byte over the fabric, verified, 90 % of ideal" {
	for file in "$mini" "$zone"; do
		result=$(sim "$file" --run "write --size 1M --iterations 16")
		check "$result" '.verified and .lost == 0 and .duplicated == 0 and .bytes_wrong == 0'
		check "$result" '.bytes == .size_bytes * .iterations * .flows'
		check "$result" '.bytes_zone >= .bytes * 0.95'
		check "$result" '.goodput_bps >= .goodput_ideal_bps * 0.9'
	done
}

@test "permutation: every byte over the fabric, verified, 90 % of ideal" {
	for file in "$mini" "$zone"; do
		result=$(sim "$file" --run "permutation --size 1M --iterations 64")
		check "$result" '.verified and .lost == 0 and .duplicated == 0'
		check "$result" '.bytes_zone >= .bytes * 0.95'
		check "$result" '.goodput_bps >= .goodput_ideal_bps * 0.9'
	done
}

@test "incast is fair" {
	result=$(sim "$mini" --run "incast --size 1M --iterations 4")
	check "$result" '.verified and .jain >= 0.99'
}

# The three senders' NICs: one behind each other RDSW of plane 0 and 1.
senders=b0-z0-h0:gpu0,b0-z0-h0:gpu1,b0-z0-h2:gpu0,b0-z0-h2:gpu1

@test "udp incast at line rate drops at VOQs only and is fair" {
	result=$(sim "$mini" --run "udp --hosts $senders --size 4096 --duration 400us --plane 0" \
		--show counters)
	run_result=$(jq '.[0].result' <<<"$result")
	check "$run_result" '.jain >= 0.99 and .reordered == 0 and .bytes_wrong == 0'
	check "$run_result" '.goodput_bps >= .goodput_ideal_bps * 0.95'
	check "$result" '[.[1].result[] | .fabric_drops + .reassembly_errors] | add == 0'
	check "$result" '[.[1].result[] | .voq_drops] | add > 0'
}

@test "spraying: an RDSW's fabric links carry the same bytes within 5 %" {
	result=$(sim "$zone" --run "permutation --size 1M --iterations 8" \
		--show "port --node b0-z0-p0-rdsw0")
	check "$result" '[.[1].result[] | select(.port | startswith("fab")) | .cell_bytes_tx]
		| (max - min) <= 0.05 * max and length == 4 and min > 0'
}

@test "a failed link: its ends see it, traffic goes round it" {
	result=$(sim "$mini" --fail b0-z0-p0-rdsw0:fab0 --run "write --size 256K" \
		--show "fabric reachability")
	check "$result" '.[0].result.verified'
	check "$result" '[.[1].result[] | select(.node == "b0-z0-p0-rdsw0" and
		.destination == "b0-z0-p0-rdsw1") | .output] == [["fab1"]]'
	check "$result" '[.[1].result[] | select(.node == "b0-z0-p0-fdsw0" and
		.destination == "b0-z0-p0-rdsw0") | .output] == [[]]'
}

@test "a plane that lost a link doesn't hold the others back" {
	# Two GPUs share one 445G link of one plane, and have all of the other: 78 % of their rate.
	result=$(sim "$mini" --fail b0-z0-p0-rdsw0:fab0 --run "permutation --size 1M --iterations 32")
	check "$result" '.verified and .goodput_bps > 0.65 * .goodput_ideal_bps'
}

@test "both fabric links of an RDSW down: the other plane carries it all" {
	result=$(sim "$mini" --fail b0-z0-p0-rdsw0:fab0 --fail b0-z0-p0-rdsw0:fab1 \
		--run "write --size 256K")
	check "$result" '.verified'
}

@test "several results make a list, text names each" {
	result=$(sim "$mini" --run "write --size 64K" --run "incast --size 64K" --show voq)
	check "$result" 'length == 3 and .[0].command == "write --size 64K"'
	run "$DSFEMU" sim "$mini" --run "write --size 64K" --show voq
	[ "$status" -eq 0 ]
	[[ "$output" == *"# write --size 64K"*"# voq"* ]]
}

@test "the expanded form simulates alike" {
	"$DSFEMU" expand "$mini" >"$BATS_TEST_TMPDIR/explicit.json"
	a=$(sim "$mini" --run "write --size 64K" | jq -r .trace_hash)
	b=$(sim "$BATS_TEST_TMPDIR/explicit.json" --run "write --size 64K" | jq -r .trace_hash)
	[ "$a" = "$b" ]
}

@test "what this version can't run is refused, not run as something else" {
	jq '.transport.name = "rocev2"' "$mini" >"$BATS_TEST_TMPDIR/other.json"
	run "$DSFEMU" sim "$BATS_TEST_TMPDIR/other.json"
	[ "$status" -eq 2 ]
	[[ "$output" == "dsfemu: "*"this version"* ]]
	run "$DSFEMU" sim clos.json --drill 'random --seed 1'
	[ "$status" -eq 2 ]
	[[ "$output" == *"drills are for cell fabrics"* ]]
}

@test "wrong use exits 2 and prints nothing on stdout" {
	for words in "--run frobnicate" "--run write\ --size\ 0" "--run write\ --hosts\ nobody" \
		"--run write\ --sice\ 4" "--fail b0-z0-p0-rdsw0:fab9" "--show nonsense" "--until x" \
		"--seed x"; do
		status=0
		output=$(eval "\"$DSFEMU\" sim \"$mini\" $words --json" 2>"$BATS_TEST_TMPDIR/err") ||
			status=$?
		[ "$status" -eq 2 ]
		[ -z "$output" ]
		grep -q '^dsfemu: ' "$BATS_TEST_TMPDIR/err"
	done
}

@test "drills: one holds, the page and the object say so; the same seed is the same drill" {
	result=$(sim "$mini" --drill fdsw-killed.json)
	check "$result" '.verdict == "held" and .drill == "fdsw-killed" and
		([.faults[] | keys | contains(["at_ns", "kind", "target"])] == [true]) and
		(.invariants | length) == 8 and ([.invariants[].held] | all) and .convergence_ns.max > 0'
	run "$DSFEMU" sim "$mini" --drill fdsw-killed.json
	[[ "$output" == *"# fdsw-killed.json"*"node kill"*"verdict      held"* ]]
	a=$(sim "$mini" --drill 'random --seed 9 --duration 500us --faults 5')
	b=$(sim "$mini" --drill 'random --seed 9 --duration 500us --faults 5')
	[ "$a" = "$b" ]
	check "$a" '(.faults | length) == 5 and .seed == 9'
}

@test "drills: what is wrong with a file is told with its line and path" {
	printf '{"name": "x", "faults": [\n{"at": 0, "for": "1us", "kind": "link down",\n"target": "x:y"}]}' >"$BATS_TEST_TMPDIR/bad.json"
	run -2 --separate-stderr "$DSFEMU" sim "$mini" --drill "$BATS_TEST_TMPDIR/bad.json"
	[ -z "$output" ]
	[[ "$stderr" == *"bad.json:3: faults[0].target: "* ]]
	for words in nothing.json 'random --seed x' 'random --duration 1' 'random --faults 0' \
		'random --luck 1' 'storm.json --seed 1'; do
		run -2 --separate-stderr "$DSFEMU" sim "$mini" --drill "$words"
		[ -z "$output" ]
	done
}

@test "drills: links end as their file says, not better" {
	cd "$BATS_TEST_TMPDIR"
	"$DSFEMU" expand "$mini" |
		jq '(.links[] | select(.a == "b0-z0-p0-rdsw0:fab0") | .jitter) = 40' >lab.json
	cat >drill.json <<-'END'
		{ "name": "own", "seed": 3, "workload": { "kind": "permutation", "size": "64K" },
		  "faults": [
		    { "at": "100us", "for": "100us", "kind": "link impair", "delay": "1us",
		      "target": "b0-z0-p0-rdsw0:fab0" },
		    { "at": "150us", "for": "100us", "kind": "node kill", "target": "b0-z0-p0-fdsw0" } ] }
	END
	result=$(sim lab.json --drill drill.json --show port)
	check "$result" '.[0].result.verdict == "held"'
	check "$result" '[.[1].result[] | select(.impairment != null) | [.node, .port, .impairment]] ==
		[["b0-z0-p0-rdsw0", "fab0", {"jitter_ns": 40}], ["b0-z0-p0-fdsw0", "fab0", {"jitter_ns": 40}]]'
}

@test "--drain of an RDSW: nobody reaches it, not by balance's doing, and nothing is lost" {
	local l2=$DSF_SOURCE/topologies/l2-zone.json rdsw=b0-z1-p0-rdsw2
	result=$(sim "$l2" --drain $rdsw --run 'write --scope cross-zone --size 64K --hosts b0-z0-h0,b0-z0-h1,b0-z2-h0,b0-z2-h1' \
		--show "fabric reachability $rdsw" --show counters)
	check "$result" '.[1].result | length > 30 and all(.[] | select(.node != "'$rdsw'");
		.output == [] and .advertised == [] and .withdrawn == [] and (.cut_by_balance | not))'
	check "$result" '.[2].result | map(.fabric_unreachable_dropped, .reassembly_errors, .cells_lost) | add == 0'
	cat >drill.json <<-END
		{ "name": "own", "seed": 3, "workload": { "kind": "permutation", "size": "64K" }, "faults": [
		    { "at": "20us", "for": "50us", "kind": "node drain", "target": "$rdsw" },
		    { "at": "21us", "for": "100us", "kind": "node drain", "target": "b0-z3-p0-rdsw0" },
		    { "at": "80us", "for": "3us", "kind": "node drain", "target": "$rdsw" } ] }
	END
	check "$(sim "$l2" --drill drill.json)" '.verdict == "held"'
}

@test "--fail alone tells how soon all have followed" {
	result=$(sim "$mini" --fail b0-z0-p0-rdsw0:fab0)
	check "$result" '.converged_ns > 500 and .converged_ns < 500000' # a link's delay; published timers
	check "$(sim "$mini" --drain b0-z0-p0-fdsw0)" '.converged_ns > 0 and .converged_ns < 500000'
	check "$(sim "$mini")" '.converged_ns == null'
}

@test "a super spine switch that only one building has waits for no route to the other" {
	check "$(sim "$DSF_SOURCE/tests/topologies/halves.json")" '.ready'
}
