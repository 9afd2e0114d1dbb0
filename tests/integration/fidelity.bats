#!/usr/bin/env bats
# The verdict over a run: invalid when the machine was too slow, with a dilation that does.

bats_require_minimum_version 1.5.0
load lib.bash

setup()
{
	need_root
	LAB=fid$$
	burners=()
}

teardown()
{
	[ ${#burners[@]} -eq 0 ] || kill "${burners[@]}"
	[ "$(id -u)" != 0 ] || "$DSFEMU" down "$LAB" --kill --quiet 2>/dev/null || true
}

# measure DILATION: a saturating run in a lab of its own; its report goes to $report
measure()
{
	timeout 60 "$DSFEMU" up "$DSF_SOURCE/topologies/mini.json" --name "$LAB" --time-dilation "$1" --quiet
	report=$(timeout 120 "$DSFEMU" run permutation --size 1M --iterations 8 --lab "$LAB" --json)
	"$DSFEMU" down "$LAB" --quiet
	echo "dilation $1: $(jq -c .fidelity <<<"$report")"
}

@test "a lab at the dilation that is chosen by itself is valid" {
	for _ in 1 2 3; do # the machine's other work comes and goes
		measure "$("$DSFEMU" plan "$DSF_SOURCE/topologies/mini.json" --json | jq .time_dilation)"
		[ "$(jq .fidelity.valid <<<"$report")" = false ] || break
	done
	[ "$(jq .fidelity.valid <<<"$report")" = true ]
	[ "$(jq .fidelity.suggested_time_dilation <<<"$report")" = null ]
}

@test "with two busy processes a small dilation is invalid, and the one that is named does" {
	for _ in 1 2; do
		(while :; do :; done) 3>&- &
		burners+=($!)
	done
	measure 500
	[ "$(jq .fidelity.valid <<<"$report")" = false ]
	for _ in 1 2 3; do # what is named is an estimate
		measure "$(jq .fidelity.suggested_time_dilation <<<"$report")"
		[ "$(jq .fidelity.valid <<<"$report")" = false ] || break
	done
	[ "$(jq .fidelity.valid <<<"$report")" = true ]
	[ "$(jq '.verified and .lost == 0' <<<"$report")" = true ]
}
