#!/usr/bin/env bats
# Two stages and Input Balanced Mode: planner, simulator and live lab come to the same, and traffic
# goes around what is withheld.

bats_require_minimum_version 1.5.0
load lib.bash

setup_file()
{
	export figures="$DSF_SOURCE/topologies/figures.json" l2="$DSF_SOURCE/topologies/l2-zone.json"
	export forced="$DSF_SOURCE/tests/topologies/forced.json"
	[ "$(id -u)" = 0 ] || return 0
	export LAB=bal$$
	timeout 120 "$DSFEMU" up "$figures" --name "$LAB" --time-dilation 4000 --quiet
}

teardown_file()
{
	[ "$(id -u)" = 0 ] || return 0
	"$DSFEMU" down "$LAB" --kill --quiet
}

lab()
{
	timeout 120 "$DSFEMU" "$@" --lab "$LAB"
}

# planned FILE WORDS...: reachability as the planner has it, a row a line
planned()
{
	"$DSFEMU" plan "$@" --json | jq -c '.reachability[]'
}

simulated()
{
	"$DSFEMU" sim "$@" --show 'fabric reachability' --json | jq -c '.[]'
}

live()
{
	lab show fabric reachability --json | jq -c '.[]'
}

live_is()
{
	[ "$(live)" = "$1" ]
}

# row NODE DESTINATION: of the rows on stdin
row()
{
	jq -c "select(.node == \"$1\" and .destination == \"$2\") | [.output, .advertised, .withdrawn]"
}

@test "the planner and the simulator agree" {
	for failed in x-rdsw3:fab1 x-fdsw1:fab7 "x-fdsw1:fab7 y-rdsw0:fab0 sdsw0:fab4"; do
		[ "$(planned "$figures" --fail $failed)" = "$(simulated "$figures" --fail $failed)" ]
	done
	for seed in 1 2 3; do
		[ "$(planned "$l2" --seed $seed --fail b0-z1-p0-fdsw2:fab5 b0-z0-p0-rdsw1:fab0)" = \
			"$(simulated "$l2" --seed $seed --fail b0-z1-p0-fdsw2:fab5 --fail b0-z0-p0-rdsw1:fab0)" ]
	done
}

@test "forced orders replay the published figure" {
	rows=$(simulated "$forced" --fail x-fdsw1:fab7 y-rdsw0:fab0)
	[ "$rows" = "$(planned "$forced" --fail x-fdsw1:fab7 y-rdsw0:fab0)" ]
	[ "$(row x-fdsw1 y-rdsw0 <<<"$rows")" = '[["fab5"],["fab3"],["fab0","fab1","fab2"]]' ]
	[ "$(row sdsw1 y-rdsw0 <<<"$rows")" = '[["fab6","fab7"],["fab0","fab1"],["fab2"]]' ]
	cut=$(jq -c 'select(.cut_by_balance) | [.node, .destination]' <<<"$rows")
	[ "$cut" = '["x-rdsw0","y-rdsw0"]' ]
	[ "$("$DSFEMU" sim "$forced" --fail x-fdsw1:fab7 y-rdsw0:fab0 --show fabric --json |
		jq '.[] | select(.node == "x-rdsw0").cut_by_balance')" = 1 ]
}

@test "explain goes back to the failures" {
	why=$("$DSFEMU" sim "$forced" --fail x-fdsw1:fab7 y-rdsw0:fab0 --json \
		--show 'explain x-rdsw0:fab1 y-rdsw0')
	[ "$(jq -c '[.link, .teller, .state, .group, .input, .output, .allowed]' <<<"$why")" = \
		'["x-fdsw1:fab0","x-fdsw1","withheld","down",1,1,1]' ]
	[ "$(jq -c '[.causes[] | [.link, .state]]' <<<"$why")" = \
		'[["sdsw0:fab2","withheld"],["sdsw1:fab2","withheld"],["sdsw1:fab3","down"]]' ]
	[ "$(jq -c '.failures | sort' <<<"$why")" = '["sdsw1:fab3","y-rdsw0:fab0"]' ]
	explain() {
		"$DSFEMU" sim "$figures" --fail x-rdsw3:fab1 --json --show "explain $*" | jq -r .state
	}
	[ "$(explain x-rdsw0:fab0 y-rdsw0)" = told ]
	[ "$(explain x-fdsw1:fab0 x-rdsw3)" = unreached ]
	[ "$(explain x-fdsw1:fab3 y-rdsw3)" = down ]
	[ "$(explain x-rdsw0:fab0 x-rdsw0)" = told ]
	run -2 "$DSFEMU" sim "$figures" --show 'explain x-rdsw0:fab9 y-rdsw0'
	run -2 "$DSFEMU" sim "$figures" --show 'explain x-rdsw0:fab0 sdsw0'
	run -2 "$DSFEMU" sim "$figures" --show 'explain x-rdsw0:fab0'
}

@test "without Input Balanced Mode nothing is withheld" {
	jq '.fabric.input_balanced = false' "$figures" >"$BATS_TEST_TMPDIR/off.json"
	rows=$(simulated "$BATS_TEST_TMPDIR/off.json" --fail x-fdsw1:fab7)
	[ "$rows" = "$(planned "$BATS_TEST_TMPDIR/off.json" --fail x-fdsw1:fab7)" ]
	[ -z "$(jq 'select(.withdrawn != [])' <<<"$rows")" ]
	balance=$("$DSFEMU" sim "$BATS_TEST_TMPDIR/off.json" --fail x-fdsw1:fab7 --json \
		--show 'fabric inputbalance x-rdsw0')
	[ "$(jq -c '.[] | select(.balanced | not) | [.node, .group, .input, .output, .allowed]' \
		<<<"$balance")" = '["sdsw1","cluster 1",4,3,3]' ]
}

@test "wrong links and words exit 2" {
	run -2 "$DSFEMU" plan "$figures" --fail x-rdsw0:fab9
	run -2 "$DSFEMU" plan "$figures" x-rdsw0:fab0
	run -2 "$DSFEMU" sim "$figures" x-rdsw0:fab0
	run -2 "$DSFEMU" plan "$figures" --fail x-rdsw0:fab0 --seed x
	run -2 "$DSFEMU" plan "$DSF_SOURCE/tests/topologies/ecmp.json" --fail b0-z0-p0-rdsw0:fab0
}

@test "live: failures, restoration, and traffic meanwhile" {
	need_root
	wait_until 20 live_is "$(simulated "$figures")"
	lab link down x-fdsw1:fab7
	lab link down y-rdsw0:fab0
	wait_until 20 live_is "$(planned "$figures" --fail x-fdsw1:fab7 y-rdsw0:fab0)"
	[ "$(lab explain x-rdsw0:fab0 y-rdsw0 --json | jq -c '.state, .failures')" = "$("$DSFEMU" sim \
		"$figures" --fail x-fdsw1:fab7 y-rdsw0:fab0 --json --show 'explain x-rdsw0:fab0 y-rdsw0' |
		jq -c '.state, .failures')" ]
	run -2 "$DSFEMU" explain x-rdsw0:eth0 y-rdsw0 --lab "$LAB"
	[ "$(lab show fabric inputbalance --json | jq '[.[] | select(.balanced | not)] | length')" = 0 ]
	[ "$(lab run permutation --scope cross-zone --size 256K --json | jq .verified)" = true ]
	lab link up x-fdsw1:fab7
	lab link up y-rdsw0:fab0
	wait_until 20 live_is "$(simulated "$figures")"
}
