# Wireshark dissectors on bytes that need no lab: no root.

bats_require_minimum_version 1.5.0

setup() {
	command -v tshark >/dev/null && command -v text2pcap >/dev/null || skip "no tshark"
	bytes="$DSF_SOURCE/tests/fuzz/corpus/fsdb_wire/s0" # a message of each type, a record of each kind
	file="$BATS_TEST_TMPDIR/file.pcap"
}

# capture FILE SIZE : its bytes as segments of so many bytes at most
capture() {
	split -b "$2" "$1" "$BATS_TEST_TMPDIR/part."
	for part in "$BATS_TEST_TMPDIR"/part.*; do
		od -Ax -tx1 -v "$part"
	done | text2pcap -q -T 40000,5957 - "$file"
}

fsdb() {
	tshark -X "lua_script:$DSF_SOURCE/scripts/wireshark/fsdb.lua" -r "$file" "$@" \
		2>"$BATS_TEST_TMPDIR/tshark"
}

@test "FSDB: every message and record is shown, none is malformed" {
	capture "$bytes" 4096
	[ "$(fsdb -T fields -e fsdb.type)" = 1,2,3,5,4,6,7,8 ]
	[ "$(fsdb -T fields -e fsdb.record.kind)" = 1,2,3,1,2,3 ]
	[ "$(fsdb -T fields -e fsdb.record.set)" = 1,1,1,0,0,0 ] ||
		[ "$(fsdb -T fields -e fsdb.record.set)" = True,True,True,False,False,False ]
	[ "$(fsdb -T fields -e fsdb.record.address)" = fd00::1,fd00::2,fd00::2 ]
	[ "$(fsdb -T fields -e fsdb.id -e fsdb.revision -e fsdb.records)" = $'3\t1,1\t3' ]
	[ -z "$(fsdb -Y 'fsdb.malformed || _ws.malformed || _ws.lua.error')" ]
	! grep -i lua "$BATS_TEST_TMPDIR/tshark"
}

@test "FSDB: messages that segments cut are put together" {
	capture "$bytes" 7
	types=$(fsdb -Y fsdb -T fields -e fsdb.type | tr '\n' ,)
	[ "$(tr -s , <<<"$types")" = 1,2,3,5,4,6,7,8, ]
	[ -z "$(fsdb -Y 'fsdb.malformed || _ws.malformed')" ]
}

@test "FSDB: whole sessions, in segments of any size" {
	for side in 0 1; do
		for size in 13 1440; do
			rm -f "$BATS_TEST_TMPDIR"/part.*
			capture "$DSF_SOURCE/tests/fuzz/corpus/fsdb_wire/session$side" $size
			[ -z "$(fsdb -Y 'fsdb.malformed || _ws.malformed || _ws.lua.error')" ]
			types=$(fsdb -Y fsdb -T fields -e fsdb.type | tr '\n' , | tr -s ,)
			echo "side $side, segments of $size: $types"
			[[ "$types" == 1,2,* ]]
			[[ $side == 1 || "$types" == *,8, ]]
			records=$(fsdb -Y fsdb.record -T fields -e fsdb.record.kind | tr '\n' , | tr -s , '\n' | wc -l)
			[ "$records" -ge $((side == 1 ? 200 : 4)) ]
		done
	done
}

@test "FSDB: what is wrong is called malformed" {
	# byte, value: magic; version; type; a record's kind; scope; size of the last message
	while read -r at value; do
		cp "$bytes" "$BATS_TEST_TMPDIR/bad"
		# shellcheck disable=SC2059
		printf "\\x$value" |
			dd of="$BATS_TEST_TMPDIR/bad" bs=1 seek="$at" conv=notrunc status=none
		rm -f "$BATS_TEST_TMPDIR"/part.*
		capture "$BATS_TEST_TMPDIR/bad" 4096
		echo "byte $at is $value"
		[ -n "$(fsdb -Y fsdb.malformed)" ]
	done <<-END
		4 00
		2 02
		3 09
		41 04
		46 02
		1 03
	END
}

# reach FLAGS-AND-SWITCHES BITMAPS : a train of one reachability cell about switches from 64 on
reach() {
	local payload="0040 $1 $2" size
	size=$(printf '%02x' $(($(tr -d ' ' <<<"$payload" | wc -c) / 2)))
	xxd -r -p <<-END | od -Ax -tx1 -v | text2pcap -q - "$file"
		020000000001 020000000002 88b5 01 01 0001 00$(printf '%02x' $((32 + 0x$size)))
		0005 0000 0000000000000000
		04 00 00$size 00$size 0005 0000 00 00 00000000 00000000 000000000000000000000000 $payload
	END
}

cells() {
	tshark -X "lua_script:$DSF_SOURCE/scripts/wireshark/dsf.lua" -r "$file" "$@" \
		2>"$BATS_TEST_TMPDIR/tshark"
}

@test "DSF: what a reachability cell tells, withholds and is a last resort for" {
	reach 0009 '0101'
	[ "$(cells -T fields -e dsf.reach.switch -e dsf.reach.withheld -e dsf.reach.resort)" = $'64,72\t\t' ]
	reach 6009 '0101 0200 0400'
	[ "$(cells -T fields -e dsf.reach.switch -e dsf.reach.withheld -e dsf.reach.resort)" = $'64,72\t65\t66' ]
	[ -z "$(cells -Y 'dsf.malformed || _ws.malformed || _ws.lua.error')" ]
	reach a009 '0000 0401'
	cells -V | grep -q 'drained, 0 switches reached, 2 by last resort'
	[ -z "$(cells -Y 'dsf.malformed || _ws.malformed || _ws.lua.error')" ]
	for wrong in '0009 01' '2009 010101' '0009 010101'; do
		# shellcheck disable=SC2086
		reach $wrong
		echo "$wrong"
		[ -n "$(cells -Y dsf.malformed)" ]
	done
}
