#!/usr/bin/env bats
# Topology files through the real program: validate, expand, plan, graph. Needs no root.

setup()
{
	cd "$BATS_TEST_TMPDIR" || return 1
	# Without a region of 717,000 links, which takes minutes in its explicit form.
	topologies=("$DSF_SOURCE"/topologies/*.json "$DSF_SOURCE"/tests/topologies/*.json)
	region=$DSF_SOURCE/topologies/meta-region.json
	for i in "${!topologies[@]}"; do
		[[ "${topologies[i]}" != *.schema.json && "${topologies[i]}" != "$region" ]] ||
			unset "topologies[i]"
	done
}

# bad TEXT LINE PATH: the file is refused with one line on stderr, exit 2, nothing on stdout
bad()
{
	printf '%b' "$1" >bad.json
	for command in validate expand plan graph; do
		run -2 --separate-stderr "$DSFEMU" "$command" ./bad.json
		[ "$output" = "" ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ "$stderr" == "dsfemu: ./bad.json:$2: $3: "* ]]
	done
}

bats_require_minimum_version 1.5.0

@test "every shipped topology is valid" {
	[ "${#topologies[@]}" -ge 6 ]
	for file in "${topologies[@]}" "$region"; do
		run -0 --separate-stderr "$DSFEMU" validate "$file"
		[[ "$output" == *" is valid: "* ]]
		[ "$stderr" = "" ]
	done
}

@test "expanding an expanded file gives the same bytes" {
	for file in "${topologies[@]}"; do
		"$DSFEMU" expand "$file" >once.json
		"$DSFEMU" expand once.json >twice.json
		cmp once.json twice.json
		[ "$(tail -c 1 once.json | od -An -c | tr -d ' ')" = '\n' ]
	done
}

@test "files and their expanded forms fit the schema" {
	/usr/bin/env python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is absent"
	for file in "${topologies[@]}"; do
		"$DSFEMU" expand "$file" >expanded.json
		python3 -W ignore - "$DSF_SOURCE/topologies/dsfemu.schema.json" "$file" expanded.json <<-'END'
			import json, sys, jsonschema
			schema = json.load(open(sys.argv[1]))
			jsonschema.Draft202012Validator.check_schema(schema)
			for name in sys.argv[2:]:
			    jsonschema.Draft202012Validator(schema).validate(json.load(open(name)))
		END
	done
}

@test "drills fit their schema, which refuses what the program refuses" {
	/usr/bin/env python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is absent"
	python3 -W ignore - "$DSF_SOURCE"/drills/*.json <<-'END'
		import copy, json, sys, jsonschema
		files = {name: json.load(open(name)) for name in sys.argv[1:]}
		schema = [f for name, f in files.items() if name.endswith("schema.json")][0]
		jsonschema.Draft202012Validator.check_schema(schema)
		check = jsonschema.Draft202012Validator(schema)
		drills = {name: f for name, f in files.items() if f is not schema}
		assert len(drills) >= 10
		for drill in drills.values():
		    check.validate(drill)
		good = {"name": "x", "faults": [{"at": 0, "for": "1us", "kind": "link down", "target": "any fabric"}]}
		check.validate(good)
		for key, value in [("name", "a b"), ("faults", []), ("luck", 1), ("settle", "soon"), ("hold", ["luck"]),
		                   ("workload", {}), ("workload", {"kind": "udp"})]:
		    assert not check.is_valid({**good, key: value}), key
		for key, value in [("at", "1sw"), ("kind", "cut"), ("loss", "1"), ("count", 0), ("luck", 1)]:
		    bad = copy.deepcopy(good)
		    bad["faults"][0][key] = value
		    assert not check.is_valid(bad), key
	END
}

@test "the schema refuses what the program refuses" {
	/usr/bin/env python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is absent"
	count=0
	for change in '.plains = 2' '.planes = 0' '.planes = "2"' 'del(.name)' '.name = "a/b"' \
		'.buildings = []' '.buildings[0].zones[0].fdsws = 1' 'del(.buildings[0].zones[0].fdsw)' \
		'.link_defaults.gpu.rate = "400g"' '.link_defaults.gpu.rate = 0' \
		'.fabric.mode = "clos"' '.transport.paths = 0' '.nodes = [{"name": "a"}]' \
		'.links = [{"a": "x"}]' 'del(.buildings)'; do
		jq "$change" "$DSF_SOURCE/topologies/mini.json" >changed.json
		run -2 "$DSFEMU" validate changed.json
		run ! python3 -W ignore - "$DSF_SOURCE/topologies/dsfemu.schema.json" changed.json <<-'END'
			import json, sys, jsonschema
			jsonschema.Draft202012Validator(json.load(open(sys.argv[1]))).validate(json.load(open(sys.argv[2])))
		END
		count=$((count + 1))
	done
	[ "$count" = 15 ]
}

@test "a bad file: one error with file, line and path, exit 2" {
	bad '' 1 '(top)'
	bad 'not JSON' 1 '(top)'
	bad '{"name": "x",\n"plains": 2}' 2 plains
	bad '{"name": "x",\n"name": "y"}' 2 name
	bad '{"name": "a/b"}' 1 name
	bad '{"name":\n"a\\u0000b"}' 2 name
	bad '{"name": "x",\n"planes":\n1e300}' 2 planes
	bad '{"name": "x",\n"nodes": [\n{"name": "..", "role": "host"}]}' 3 'nodes[0].name'
	bad '{"name": "x",\n"nodes": [{"name": "h", "role": "host"}],\n"links": [\n{"a": "h:gpu0p0", "b": "r:eth0"}]}' \
		4 'links[0].b'
}

@test "no file, a folder, an unreadable file" {
	run -2 --separate-stderr "$DSFEMU" validate ./none.json
	[ "$stderr" = "dsfemu: ./none.json: No such file or directory" ]
	run -2 --separate-stderr "$DSFEMU" validate .
	[ "$stderr" = "dsfemu: .: Is a directory" ]
	run -2 --separate-stderr "$DSFEMU" validate ""
	[ "$output" = "" ]
}

@test "a NUL byte in a file is refused" {
	printf '{"name": "a\0b"}' >bad.json
	run -2 --separate-stderr "$DSFEMU" validate bad.json
	[[ "$stderr" == "dsfemu: bad.json:1: name: "* ]]
}

@test "control characters of a file don't reach the terminal" {
	printf '{"name": "x", "\\u001b[31m\\u0007": 1}' >bad.json
	run -2 --separate-stderr "$DSFEMU" validate bad.json
	[[ "$stderr" == *'["\x1b[31m\x07"]'* ]]
	! grep -q "$(printf '\033')" <<<"$stderr"
}

@test "--json is one document, on failure nothing" {
	for command in validate expand plan; do
		"$DSFEMU" "$command" --json "$DSF_SOURCE/topologies/mini.json" | jq -es 'length == 1'
		"$DSFEMU" -v "$command" "$DSF_SOURCE/topologies/mini.json" --json 2>/dev/null |
			jq -es 'length == 1'
		run -2 --separate-stderr "$DSFEMU" "$command" --json ./none.json
		[ "$output" = "" ]
	done
}

@test "validate and plan count the same as the expanded file" {
	for file in "${topologies[@]}"; do
		"$DSFEMU" expand "$file" >e.json
		"$DSFEMU" validate --json "$file" >v.json
		"$DSFEMU" plan --json "$file" >p.json
		jq -e -s '(.[0].nodes | length) == .[1].nodes and .[1].nodes == (.[2].nodes | add) and
			(.[0].links | length) == .[1].links and .[1].links == (.[2].links | add) and
			.[1].gpus == .[2].gpus and
			([.[0].links[] | select(has("system_port"))] | length) == .[2].system_ports' \
			e.json v.json p.json
	done
}

@test "plan of mini.json and l1-zone.json" {
	"$DSFEMU" plan --json "$DSF_SOURCE/topologies/mini.json" >p.json
	jq -e '.gpus == 8 and .nodes.rdsw == 8 and .nodes.fdsw == 4 and .nodes.host == 4 and
		.rates_bps.gpu == 6400000000000 and .rates_bps.fabric == 7120000000000 and
		.bisection_bps == 3200000000000 and .fabric_speedup > 1.1 and .fabric_speedup < 1.12 and
		.ecn_min_ns == 2 * .credit_loop_ns and .time_dilation >= 1 and .delay_skew_ns == 0' p.json
	"$DSFEMU" plan --json "$DSF_SOURCE/topologies/l1-zone.json" >p.json
	jq -e '.gpus == 16 and .nodes.rdsw == 16 and .nodes.fdsw == 8 and .links.fabric == 64 and
		.fabric_speedup > 1.1 and .fabric_speedup < 1.12' p.json
	run -0 "$DSFEMU" plan "$DSF_SOURCE/topologies/mini.json"
	[[ "$output" == *"speed-up"* && "$output" == *"credit loop"* && "$output" == *"time dilation"* ]]
}

@test "graph: dot, svg, mermaid name every node" {
	"$DSFEMU" expand "$DSF_SOURCE/tests/topologies/region.json" >e.json
	for format in dot svg mermaid; do
		"$DSFEMU" graph "$DSF_SOURCE/tests/topologies/region.json" --format "$format" >graph
		for node in $(jq -r '.nodes[].name' e.json); do
			grep -qF "$node" graph
		done
	done
	"$DSFEMU" graph e.json --format=svg >graph.svg
	[ "$(grep -c '<line ' graph.svg)" = "$(jq '[.links[] | [.a, .b] | map(split(":")[0])] | unique | length' e.json)" ]
	if command -v python3 >/dev/null; then
		python3 -c 'import xml.dom.minidom as x; x.parse("graph.svg")'
	fi
	[ "$("$DSFEMU" graph e.json)" = "$("$DSFEMU" graph e.json --format dot)" ]
}

@test "graph of a region: a box a building, zone and plane; nodes side by side; parallel links counted" {
	region92=$DSF_SOURCE/topologies/region.json
	# 2 buildings, in each 2 zones and an edge PoD, in each of those 2 planes
	"$DSFEMU" graph "$region92" >r.dot
	[ "$(grep -c 'subgraph cluster_[0-9]' r.dot)" = 20 ]
	[ "$(grep -c 'rank=same' r.dot)" = 5 ]
	[ "$(grep -c ' -- .*label="2"' r.dot)" = 48 ]
	if command -v dot >/dev/null; then dot -Tsvg r.dot >/dev/null; fi
	"$DSFEMU" graph "$region92" --format mermaid >r.mermaid
	[ "$(grep -c '^  subgraph g' r.mermaid)" = 20 ]
	[ "$(grep -c '^  end' r.mermaid)" = 21 ] # with the legend
	"$DSFEMU" graph "$region92" --format svg >r.svg
	python3 - <<-'END'
		import xml.dom.minidom as x
		def box(r):
		    left, top, wide, high = (int(r.getAttribute(k)) for k in ("x", "y", "width", "height"))
		    return left, top, left + wide, top + high
		svg = x.parse("r.svg").documentElement
		whole = 0, 0, int(svg.getAttribute("width")), int(svg.getAttribute("height"))
		nodes = {}
		for g in svg.getElementsByTagName("g"):
		    name = g.getElementsByTagName("title")[0].firstChild.data
		    nodes[name] = box(g.getElementsByTagName("rect")[0])
		    # the label fits: 11 px monospace
		    label = g.getElementsByTagName("text")[0].firstChild.data
		    assert name.endswith(label) and 6.7 * len(label) < nodes[name][2] - nodes[name][0], name
		assert len(nodes) == 92, len(nodes)
		inside = lambda a, b: a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]
		apart = lambda a, b: a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
		rows = list(nodes.values())
		for i, a in enumerate(rows):
		    assert inside(a, whole)
		    assert all(apart(a, b) for b in rows[:i])
		# Boxes: what carries a building's name is inside one that no other building's is in.
		rects = [box(r) for r in svg.getElementsByTagName("rect")
		         if r.parentNode == svg and r.getAttribute("stroke") == "#aaa"]
		assert len(rects) == 20, len(rects)
		for prefix in ("b0-", "b1-", "b0-z0-", "b1-e-", "b1-z1-p1-"):
		    own = {n for n in nodes if n.startswith(prefix)}
		    assert own in [{n for n in nodes if inside(nodes[n], r)} for r in rects], prefix
		# Tiers are rows: one height a role.
		tier = lambda n: n.rsplit("-", 1)[1].rstrip("0123456789").replace("edsw", "rdsw")
		assert len({(tier(n), b[1]) for n, b in nodes.items()}) == 5
		counts = [t for t in svg.getElementsByTagName("text") if t.getAttribute("font-size") == "10"]
		assert [t.firstChild.data for t in counts] == ["2"] * 48
	END
}

@test "graph of a lab that doesn't run" {
	run -2 --separate-stderr "$DSFEMU" graph nosuchlab
	[[ "$stderr" == "dsfemu: nosuchlab: no such lab"* ]]
}

@test "a shipped topology is found from any folder" {
	run -0 "$DSFEMU" validate mini.json
	run -0 "$DSFEMU" validate topologies/mini.json
	echo '{' >mini.json
	run -2 "$DSFEMU" validate mini.json # the one here comes first
}

@test "a full disk and a reader that leaves end with 1" {
	[ -w /dev/full ] || skip "no /dev/full"
	run -1 --separate-stderr bash -c "'$DSFEMU' expand mini.json >/dev/full"
	[ "$stderr" = "dsfemu: stdout: No space left on device" ]
	run -1 --separate-stderr bash -c "'$DSFEMU' expand '$DSF_SOURCE/tests/topologies/region.json' 1>&-"
	run -0 bash -c "set -o pipefail; '$DSFEMU' graph mini.json --format svg | cat >/dev/null"
	run bash -c "'$DSFEMU' expand '$DSF_SOURCE/tests/topologies/region.json' | true; exit \${PIPESTATUS[0]}"
	[ "$status" = 0 ] || [ "$status" = 1 ]
}

@test "wrong use: exit 2, and a hint" {
	run -2 --separate-stderr "$DSFEMU"
	[ "$output" = "" ]
	run -2 --separate-stderr "$DSFEMU" vaildate mini.json
	[[ "$stderr" == *"did you mean validate?"* ]]
	run -2 --separate-stderr "$DSFEMU" validate
	[[ "$stderr" == *"usage: dsfemu validate FILE"* ]]
	run -2 "$DSFEMU" validate mini.json mini.json
	run -2 --separate-stderr "$DSFEMU" plan --jsno mini.json
	[[ "$stderr" == *"did you mean --json?"* ]]
	run -2 --separate-stderr "$DSFEMU" graph mini.json --format
	[[ "$stderr" == *"FORMAT is missing"* ]]
	run -2 --separate-stderr "$DSFEMU" graph mini.json --format svgg
	[[ "$stderr" == *"did you mean svg?"* ]]
	run -2 "$DSFEMU" graph mini.json --format svg --format dot
	run -2 "$DSFEMU" validate --json=yes mini.json
	run -2 "$DSFEMU" help nosuch
	run -2 "$DSFEMU" --lab
}

@test "options stand anywhere; words behind -- are words" {
	a=$("$DSFEMU" --json validate mini.json)
	b=$("$DSFEMU" validate --json mini.json)
	c=$("$DSFEMU" validate mini.json --json)
	d=$("$DSFEMU" validate --json -- mini.json)
	[ "$a" = "$b" ] && [ "$b" = "$c" ] && [ "$c" = "$d" ]
	[ "$("$DSFEMU" --quiet validate mini.json)" = "$("$DSFEMU" validate mini.json)" ]
	cp "$DSF_SOURCE/topologies/mini.json" ./--odd.json
	run -0 "$DSFEMU" validate -- --odd.json
}

@test "help and version" {
	run -0 "$DSFEMU" --version
	[[ "$output" == "dsfemu "[0-9]* ]]
	run -0 "$DSFEMU" help
	all=$output
	[ "$("$DSFEMU" --help)" = "$all" ]
	for command in validate expand plan graph help; do
		[[ "$all" == *"  $command "* ]]
		run -0 "$DSFEMU" help "$command"
		[[ "$output" == "usage: dsfemu $command"* ]]
		[ "$("$DSFEMU" "$command" --help)" = "$output" ]
		[ "$("$DSFEMU" "$command" -h)" = "$output" ]
	done
	run -0 "$DSFEMU" help drain # an action, of two commands
	[[ "$output" == "usage: dsfemu link "*"usage: dsfemu node "* ]]
	[ "$("$DSFEMU" help link drain)" = "$("$DSFEMU" help link)" ]
	[ "$("$DSFEMU" help stop)" = "$("$DSFEMU" help node)" ]
	run -2 "$DSFEMU" help link stop
}

@test "failures of a large fabric are planned in little memory" {
	# 26 MB of rows, which as objects would take 360 MB
	(ulimit -v 150000 && "$DSFEMU" plan "$DSF_SOURCE/topologies/meta-l1.json" --json \
		--fail b0-z0-p0-rdsw0:fab0 >plan.json)
	jq -e '.reachability | length == 336 * 128' plan.json
}

@test "none of it needs root" {
	[ "$(id -u)" = 0 ] || skip "not root anyway"
	command -v setpriv >/dev/null || skip "no setpriv"
	chmod 755 .
	cp "$DSF_SOURCE/topologies/mini.json" mini.json
	for command in validate expand plan graph; do
		run -0 setpriv --reuid=65534 --regid=65534 --clear-groups "$DSFEMU" "$command" ./mini.json
	done
}
