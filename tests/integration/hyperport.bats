# A live lab of two buildings whose edge links are a hyperport: one flow over four of them, in order.

bats_require_minimum_version 1.5.0
load lib

setup_file() {
	need_root
	export lab=$(lab_name hyper)
	building='{"sdsw": 1, "zones": [{"scaling_units": 1, "rails": 1, "hosts_per_unit": 1, "fdsw": 1}],
		"edge": {"edsw": 1, "fdsw": 1}}'
	cat >"$BATS_FILE_TMPDIR/hyper.json" <<-END
		{"name": "hyper", "buildings": [$building, $building],
		 "superspine": {"switches": 1, "per_edsw": 1},
		 "link_defaults": {"fabric": {"rate": "500G"}, "spine": {"rate": "500G"},
		  "edge": {"rate": "100G", "parallel": 4, "hyperport": true}}}
	END
	dsf up "$BATS_FILE_TMPDIR/hyper.json" --name "$lab"
}

teardown_file() {
	[ -z "${lab:-}" ] || dsf down "$lab"
	[ -z "${lab:-}" ] || nothing_left "$lab"
}

check() {
	if [ "$(jq "$2" <<<"$1")" != true ]; then
		echo "not true: $2"
		echo "$1"
		return 1
	fi
}

# member_bytes END: what each member of the hyperport has sent there
member_bytes() {
	dsf show port --lab "$lab" --node "$1" --json |
		jq -c '[.[] | select(.hyperport == "eth0") | .bytes_tx]'
}

# one_flow: datagrams of a GPU at its full rate; grown: what each member of the sender's sent of it
one_flow() {
	local before

	before=$(member_bytes b1-e-p0-edsw0)
	result=$(dsf run udp --lab "$lab" --size 4096 --rate 400G --duration 200us --json)
	grown=$(jq -nc --argjson a "$before" --argjson b "$(member_bytes b1-e-p0-edsw0)" \
		'[range(4) as $i | $b[$i] - $a[$i]]')
}

@test "one port: an address, a session, a system port; members are told one by one" {
	result=$(dsf show systemport --lab "$lab" --json)
	check "$result" '[.[] | select(.node == "b0-e-p0-edsw0" and .scope == "local") |
		[.port, .rate_bps]] == [["b0-e-p0-edsw0:eth0", 400000000000]]'
	result=$(dsf show bgp summary --lab "$lab" --node p0-ssw0 --json)
	check "$result" 'length == 2'
	result=$(dsf show port --lab "$lab" --node p0-ssw0 --json)
	check "$result" '[.[] | .hyperport] == ["eth0", "eth0", "eth0", "eth0", "eth4", "eth4", "eth4",
		"eth4", null]'
}

@test "one flow takes all members, in order" {
	one_flow
	check "$result" '.reordered == 0 and .duplicated == 0 and .bytes_wrong == 0 and .messages > 1000'
	check "$grown" 'min > 0.9 * max'
	# Three links' rate is more than any one has; a machine that is too slow says nothing of it.
	check "$result" '.goodput_bps > 300e9 or (.fidelity.valid | not)'
}

@test "a member that fails lowers the rate; the rest go on in order" {
	dsf link down b1-e-p0-edsw0:eth2 --lab "$lab"
	wait_until 10 eval '[ "$(dsf show systemport --lab "$lab" --node b1-e-p0-edsw0 --json |
		jq ".[] | select(.scope == \"local\") | .rate_bps")" = 300000000000 ]'
	result=$(dsf show bgp summary --lab "$lab" --node p0-ssw0 --json)
	check "$result" 'all(.state == "Established" and .established_times == 1)'
	one_flow
	check "$result" '.reordered == 0 and .duplicated == 0 and .bytes_wrong == 0 and .messages > 1000'
	check "$grown" '.[2] == 0 and ([.[0], .[1], .[3]] | min > 0.9 * max)'
	dsf link up b1-e-p0-edsw0:eth2 --lab "$lab"
	wait_until 30 dsf status --lab "$lab"
	one_flow
	check "$result" '.reordered == 0'
	check "$grown" 'min > 0.9 * max'
}
