/*
 * Wrong topology files: each ends with one error that has the line, the JSON path and the reason.
 */
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "tests/tap.h"
#include "topo/file.h"

struct bad {
	const char *name;
	const char *text;
	uint32_t line;
	const char *path;
	const char *part; /* of the error's text */
};

#define ZONE "{\"scaling_units\": 1, \"rails\": 1, \"hosts_per_unit\": 2, \"fdsw\": 1}"
/* Keys more at line 3. */
#define LAB(more) "{\"name\": \"x\",\n\"buildings\": [{\"zones\": [" ZONE "]}],\n" more "\n}"
/* A zone's object at line 3. */
#define ZONED(zone) "{\"name\": \"x\",\n\"buildings\": [{\"zones\": [\n" zone "\n]}]}"
/* Nodes at lines 3 to 7, then what is given at line 8. */
#define NODES(more)                                                                                \
	"{\"name\": \"x\",\n\"nodes\": [\n"                                                        \
	"{\"name\": \"h0\", \"role\": \"host\"},\n{\"name\": \"h1\", \"role\": \"host\"},\n"       \
	"{\"name\": \"r0\", \"role\": \"rdsw\"},\n{\"name\": \"r1\", \"role\": \"rdsw\"},\n"       \
	"{\"name\": \"f0\", \"role\": \"fdsw\"}" more "}"
/* A right lab with links at lines 9 to 12 and one more at 13. */
#define LINKED(more)                                                                               \
	NODES("],\n\"links\": [\n"                                                                 \
	      "{\"a\": \"h0:gpu0p0\", \"b\": \"r0:eth0\"},\n"                                      \
	      "{\"a\": \"h1:gpu0p0\", \"b\": \"r1:eth0\"},\n"                                      \
	      "{\"a\": \"r0:fab0\", \"b\": \"f0:fab0\"},\n"                                        \
	      "{\"a\": \"r1:fab0\", \"b\": \"f0:fab1\"}" more "]")

#define LONG_NAME                                                                                  \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
	"aaaa"                                                                                     \
	"aaaaaaaaaa"
#define NAME_300  LONG_NAME LONG_NAME LONG_NAME
#define ARRAYS_8  "[[[[[[[["
#define OBJECTS_8 "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":"

static const struct bad not_json[] = {
	{ "empty file", "", 1, "(top)", "ends too early" },
	{ "blanks only", " \n\n ", 3, "(top)", "ends too early" },
	{ "plain text", "hello\n", 1, "(top)", "not JSON" },
	{ "truncated object", "{\"name\": \"x\",\n\"planes\": 2", 2, "(top)", "ends too early" },
	{ "truncated string", "{\"name\": \"x", 1, "name", "does not end" },
	{ "truncated number", "{\"planes\": -", 1, "planes", "digit" },
	{ "truncated word", "{\"planes\": tru", 1, "planes", "a value is expected" },
	{ "two documents", LAB("\"planes\": 1") "\n{}", 5, "(top)", "follows the end" },
	{ "trailing comma", LAB("\"planes\": 1,"), 4, "(top)", "key in double quotes" },
	{ "missing comma", "{\"name\": \"x\"\n\"planes\": 1}", 2, "(top)", "','" },
	{ "missing colon", "{\"name\" \"x\"}", 1, "(top)", "':'" },
	{ "single quotes", "{'name': 1}", 1, "(top)", "key in double quotes" },
	{ "comment", "{\n// hello\n}", 2, "(top)", "key in double quotes" },
	{ "leading zero", LAB("\"planes\": 02"), 3, "planes", "start with 0" },
	{ "plus sign", LAB("\"planes\": +2"), 3, "planes", "a value is expected" },
	{ "no digit after point", LAB("\"planes\": 2."), 3, "planes", "digit" },
	{ "NaN", LAB("\"planes\": NaN"), 3, "planes", "a value is expected" },
	{ "line end in a string", "{\"name\": \"a\nb\"}", 1, "name", "control" },
	{ "\\u0000", "{\"name\":\n\"a\\u0000b\"}", 2, "name", "\\u0000" },
	{ "\\u0000 in a key", "{\"na\\u0000me\": 1}", 1, "(top)", "\\u0000" },
	{ "half a surrogate", "{\"name\": \"\\ud800\"}", 1, "name", "surrogate" },
	{ "the other half", "{\"name\": \"\\udc00\"}", 1, "name", "surrogate" },
	{ "bad escape", "{\"name\": \"\\x41\"}", 1, "name", "escape" },
	{ "not UTF-8", "{\"name\": \"\xff\"}", 1, "name", "UTF-8" },
	{ "overlong UTF-8", "{\"name\": \"\xc0\x80\"}", 1, "name", "UTF-8" },
	{ "nested too deeply", "{\"_\":\n" ARRAYS_8 ARRAYS_8 ARRAYS_8 ARRAYS_8, 2,
		"_[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]"
		"[0][0][0][0]",
		"too deeply" },
	{ "objects too deep", OBJECTS_8 OBJECTS_8 OBJECTS_8 OBJECTS_8 "{", 1,
		"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "too deeply" },
};

static const struct bad wrong_values[] = {
	{ "not an object", "[]", 1, "(top)", "must be an object, is an array" },
	{ "just a string", "\"name\"", 1, "(top)", "must be an object, is a string" },
	{ "no name", "{\"buildings\": [{\"zones\": [" ZONE "]}]}", 1, "(top)",
		"\"name\" is missing" },
	{ "no nodes", "{\"name\": \"x\"}", 1, "(top)", "no nodes" },
	{ "unknown key", LAB("\"plains\": 2"), 3, "plains", "unknown key: known here are name" },
	{ "unknown key in upper case", LAB("\"Planes\": 2"), 3, "Planes", "unknown key" },
	{ "empty key", LAB("\"\": 2"), 3, "[\"\"]", "unknown key" },
	{ "odd key", LAB("\"a.b[\\u0007\\u009b\": 2"), 3, "[\"a.b[\\x07\\xc2\\x9b\"]",
		"unknown key" },
	{ "$schema below the top", ZONED("{\"$schema\": \"x\"}"), 3,
		"buildings[0].zones[0].$schema", "unknown key" },
	{ "unknown key in a zone", ZONED("{\"scaling_units\": 1,\n\"fdsws\": 1}"), 4,
		"buildings[0].zones[0].fdsws", "unknown key" },
	{ "duplicate key", LAB("\"planes\": 2,\n\"planes\": 2"), 4, "planes", "duplicate key" },
	{ "duplicate key, escaped", LAB("\"planes\": 2,\n\"pl\\u0061nes\": 2"), 4, "planes",
		"duplicate key" },
	{ "duplicate in a comment", LAB("\"_\": [0,\n{\"a\": 1,\n\"a\": 2}]"), 5, "_[1].a",
		"duplicate key" },
	{ "string for a number", LAB("\"planes\": \"2\""), 3, "planes", "must be a whole number" },
	{ "null for a number", LAB("\"planes\": null"), 3, "planes", "is null" },
	{ "number for a string", "{\"name\":\n7}", 1, "name", "must be a string, is a number" },
	{ "word for a flag", LAB("\"fabric\": {\"input_balanced\": \"yes\"}"), 3,
		"fabric.input_balanced", "must be true or false" },
	{ "orders without the draw", LAB("\"fabric\": {\n\"orders\": []}"), 4, "fabric.orders",
		"are for" },
	{ "order of nobody",
		LAB("\"fabric\": {\"draw\": \"forced\", \"orders\": [\n{\"node\": \"nobody\", "
		    "\"ports\": []}]}"),
		4, "fabric.orders[0].node", "only an FDSW or SDSW" },
	{ "order of an interface node",
		LAB("\"fabric\": {\"draw\": \"forced\", \"orders\": [\n{\"node\": "
		    "\"b0-z0-p0-rdsw0\", \"ports\": [\"fab0\"]}]}"),
		4, "fabric.orders[0].node", "only an FDSW or SDSW" },
	{ "order of a strange port",
		LAB("\"fabric\": {\"draw\": \"forced\", \"orders\": [\n{\"node\": "
		    "\"b0-z0-p0-fdsw0\", \"ports\": [\"fab0\", \"fab99\"]}]}"),
		4, "fabric.orders[0].ports[1]", "has no cell port" },
	{ "order with a port twice",
		LAB("\"fabric\": {\"draw\": \"forced\", \"orders\": [\n{\"node\": "
		    "\"b0-z0-p0-fdsw0\", \"ports\": [\"fab0\", \"fab0\"]}]}"),
		4, "fabric.orders[0].ports[1]", "its place already" },
	{ "order of numbers",
		LAB("\"fabric\": {\"draw\": \"forced\", \"orders\": [\n{\"node\": "
		    "\"b0-z0-p0-fdsw0\", \"ports\": [3]}]}"),
		4, "fabric.orders[0].ports[0]", "must be the name" },
	{ "order without ports",
		LAB("\"fabric\": {\"draw\": \"forced\", \"orders\": [\n{\"node\": "
		    "\"b0-z0-p0-fdsw0\"}]}"),
		4, "fabric.orders[0]", "ports" },
	{ "array for an object", LAB("\"fabric\": []"), 3, "fabric", "must be an object" },
	{ "object for an array", "{\"name\": \"x\",\n\"buildings\": {}}", 2, "buildings",
		"must be an array" },
	{ "no building", "{\"name\": \"x\",\n\"buildings\": []}", 2, "buildings", "0 elements" },
	{ "no zone", "{\"name\": \"x\",\n\"buildings\": [{\"zones\": []}]}", 2,
		"buildings[0].zones", "0 elements" },
	{ "zero planes", LAB("\"planes\": 0"), 3, "planes", "must be 1 to 16" },
	{ "too many planes", LAB("\"planes\": 17"), 3, "planes", "must be 1 to 16" },
	{ "negative planes", LAB("\"planes\": -1"), 3, "planes", "must be 1 to 16" },
	{ "half a plane", LAB("\"planes\": 1.5"), 3, "planes", "whole number" },
	{ "1e300 planes", LAB("\"planes\": 1e300"), 3, "planes", "must be 1 to 16" },
	{ "1e999 planes", LAB("\"planes\": 1e999"), 3, "planes", "must be 1 to 16" },
	{ "2^64 planes", LAB("\"planes\": 18446744073709551617"), 3, "planes", "must be 1 to 16" },
	{ "seed of 65 bits", LAB("\"seed\": 18446744073709551616"), 3, "seed",
		"18446744073709551615" },
	{ "negative seed", LAB("\"seed\": -1"), 3, "seed", "digits only" },
	{ "seed as power", LAB("\"seed\": 1e3"), 3, "seed", "digits only" },
	{ "dilation zero", LAB("\"time_dilation\": 0"), 3, "time_dilation", "must be 1 to" },
	{ "dilation word", LAB("\"time_dilation\": \"fast\""), 3, "time_dilation", "\"auto\"" },
	{ "zero counts",
		ZONED("{\"scaling_units\": 0, \"rails\": 1, \"hosts_per_unit\": 1,"
		      "\"fdsw\": 1}"),
		3, "buildings[0].zones[0].scaling_units", "must be 1 to" },
	{ "missing count", ZONED("{\"scaling_units\": 1, \"rails\": 1, \"hosts_per_unit\": 1}"), 3,
		"buildings[0].zones[0]", "\"fdsw\" is missing" },
	{ "huge count",
		ZONED("{\"scaling_units\": 1, \"rails\": 1, \"hosts_per_unit\": 1,\n"
		      "\"fdsw\": 4000000000}"),
		4, "buildings[0].zones[0].fdsw", "must be 1 to" },
	{ "too many RDSWs",
		ZONED("{\"scaling_units\": 256, \"rails\": 64, \"hosts_per_unit\": 1,"
		      "\"fdsw\": 1}"),
		3, "buildings[0].zones[0].scaling_units", "16384 RDSWs" },
	{ "too many ports",
		ZONED("{\"scaling_units\": 1, \"rails\": 1, \"hosts_per_unit\": 1,"
		      "\"fdsw\": 4000}"),
		3, "buildings[0].zones[0]", "too many ports" },
	{ "bad mode", LAB("\"fabric\": {\"mode\": \"clos\"}"), 3, "fabric.mode",
		"must be one of dsf, ecmp" },
	{ "cell too small", LAB("\"fabric\": {\"cell_bytes\": 8}"), 3, "fabric.cell_bytes",
		"must be 192 to" },
	{ "train below a cell", LAB("\"fabric\": {\"train_bytes\": 512}"), 3, "fabric.train_bytes",
		"no room for a cell" },
	{ "train of control cells", LAB("\"fabric\": {\"train_bytes\": 1599}"), 3,
		"fabric.train_bytes", "at least cell_bytes + 1088" },
	{ "VOQ above buffer", LAB("\"fabric\": {\"voq_bytes\": \"128M\"}"), 3, "fabric.voq_bytes",
		"above buffer_bytes" },
	{ "joins below what it remains with",
		LAB("\"fabric\": {\"min_links_to_join\": 2, \"min_links_to_remain\": 3}"), 3,
		"fabric.min_links_to_join", "below min_links_to_remain" },
	{ "more minimum links than links", LAB("\"fabric\": {\n\"min_links_to_remain\": 9}"), 4,
		"fabric.min_links_to_remain", "drained for ever" },
	{ "more links to join with than links",
		LAB("\"fabric\": {\"min_links_to_remain\": 1,\n\"min_links_to_join\": 9}"), 4,
		"fabric.min_links_to_join", "drained for ever" },
	{ "weight zero", LAB("\"fabric\": {\"weights\": {\"rdma\": 0}}"), 3, "fabric.weights.rdma",
		"must be 1 to 255" },
	{ "transport", LAB("\"transport\": {\"name\": \"tcp\"}"), 3, "transport.name",
		"metaroce, rocev2" },
};

#define GPU(setting) LAB("\"link_defaults\": {\"gpu\": {" setting "}}")
#define GPU_PATH     "link_defaults.gpu."

static const struct bad wrong_measures[] = {
	{ "rate zero", GPU("\"rate\": 0"), 3, GPU_PATH "rate", "must be 1000000 to" },
	{ "rate of nothing", GPU("\"rate\": \"0G\""), 3, GPU_PATH "rate", "must be 1000000 to" },
	{ "rate negative", GPU("\"rate\": -400"), 3, GPU_PATH "rate", "must be 1000000 to" },
	{ "rate negative text", GPU("\"rate\": \"-400G\""), 3, GPU_PATH "rate", "must be a rate" },
	{ "rate without unit", GPU("\"rate\": \"400\""), 3, GPU_PATH "rate", "must be a rate" },
	{ "rate with blank", GPU("\"rate\": \"400 G\""), 3, GPU_PATH "rate", "must be a rate" },
	{ "rate in lower case", GPU("\"rate\": \"400g\""), 3, GPU_PATH "rate", "must be a rate" },
	{ "rate without digits", GPU("\"rate\": \"G\""), 3, GPU_PATH "rate", "must be a rate" },
	{ "rate with a point alone", GPU("\"rate\": \"4.G\""), 3, GPU_PATH "rate",
		"must be a rate" },
	{ "rate with two points", GPU("\"rate\": \"4.0.0G\""), 3, GPU_PATH "rate",
		"must be a rate" },
	{ "rate of 1e300", GPU("\"rate\": 1e300"), 3, GPU_PATH "rate", "must be 1000000 to" },
	{ "rate of many digits", GPU("\"rate\": \"99999999999999999999999999999999999999999999G\""),
		3, GPU_PATH "rate", "must be a rate" },
	{ "rate with part of a bit", GPU("\"rate\": \"0.0000000001G\""), 3, GPU_PATH "rate",
		"must be a rate" },
	{ "rate true", GPU("\"rate\": true"), 3, GPU_PATH "rate", "must be a rate" },
	{ "delay unit", GPU("\"delay\": \"5m\""), 3, GPU_PATH "delay", "must be a time" },
	{ "delay too long", GPU("\"delay\": \"2s\""), 3, GPU_PATH "delay", "must be 0 to" },
	{ "delay below a ns", GPU("\"delay\": \"0.5ns\""), 3, GPU_PATH "delay", "must be a time" },
	{ "loss above all", GPU("\"loss\": \"101%\""), 3, GPU_PATH "loss", "must be 0 to 1000000" },
	{ "loss too fine", GPU("\"loss\": \"0.00001%\""), 3, GPU_PATH "loss", "must be a share" },
	{ "loss as a fraction", GPU("\"loss\": 0.01"), 3, GPU_PATH "loss", "whole number" },
	{ "queue too small", GPU("\"queue_bytes\": 100"), 3, GPU_PATH "queue_bytes",
		"must be 16384 to" },
	{ "marks crossed", GPU("\"ecn_min_bytes\": \"2M\""), 2, "buildings[0].zones[0]",
		"above ecn_max_bytes" },
	{ "mtu below the payload", GPU("\"mtu\": 1500"), 2, "buildings[0].zones[0]", "mtu 1500" },
	{ "parallel GPU links", GPU("\"parallel\": 2"), 3, GPU_PATH "parallel",
		"one link a plane" },
	{ "hyper port of a GPU", GPU("\"hyperport\": true"), 3, GPU_PATH "hyperport",
		"edge links" },
	{ "kind", LAB("\"link_defaults\": {\"host\": {}}"), 3, "link_defaults.host",
		"unknown key" },
	{ "mtu above a frame", GPU("\"mtu\": 9201"), 2, "buildings[0].zones[0]", "mtu 9201" },
	{ "cell mtu", LAB("\"link_defaults\": {\"fabric\": {\"mtu\": 9000}}"), 2,
		"buildings[0].zones[0]", "must hold a train" },
};

/* "bgp" of r0 at line 4; r0's eth0 is fd5f::1, its loopback fd5f:0:0:ff00::1. */
#define BGP(more)                                                                                  \
	"{\"name\": \"x\",\n\"buildings\": [{\"zones\": [" ZONE                                    \
	"]}],\n\"nodes\": [{\"name\": \"b0-z0-p0-rdsw0\", \"bgp\":\n{" more "}}]}"
#define BGP_PATH       "nodes[0].bgp"
#define NEIGHBOR(more) BGP("\"neighbors\": [{\"address\": \"fd5f::2\", \"asn\": 7" more "}]")
#define NEIGHBOR_PATH  BGP_PATH ".neighbors[0]"
#define RULE(more)     NEIGHBOR(", \"import\": [{\"prefix\": \"2001:db8::/32\"" more "}]")
#define RULE_PATH      NEIGHBOR_PATH ".import[0]"

static const struct bad wrong_bgp[] = {
	{ "bgp of an array", LAB("\"nodes\": [{\"name\": \"b0-z0-p0-rdsw0\", \"bgp\": []}]"), 3,
		BGP_PATH, "must be an object" },
	{ "bgp of nobody", LAB("\"nodes\": [{\"name\": \"nobody\", \"bgp\": {}}]"), 3, "nodes[0]",
		"\"role\" is missing" },
	{ "bgp of an FDSW", LAB("\"nodes\": [{\"name\": \"b0-z0-p0-fdsw0\",\n\"bgp\": {}}]"), 4,
		BGP_PATH, "role fdsw is no router" },
	{ "bgp of a host", LAB("\"nodes\": [{\"name\": \"b0-z0-h0\",\n\"bgp\": {}}]"), 4, BGP_PATH,
		"role host is no router" },
	{ "more of a template's node",
		LAB("\"nodes\": [{\"name\": \"b0-z0-p0-rdsw0\",\n\"asn\": 5}]"), 4, "nodes[0].asn",
		"only \"bgp\" can be added" },
	{ "bgp twice",
		LAB("\"nodes\": [{\"name\": \"b0-z0-p0-rdsw0\", \"bgp\": {}},\n{\"name\": "
		    "\"b0-z0-p0-rdsw0\", \"bgp\": {}}]"),
		4, "nodes[1].bgp", "has one already" },
	{ "router id", BGP("\"router_id\": \"10.0.0\""), 4, BGP_PATH ".router_id",
		"an identifier as" },
	{ "router id zero", BGP("\"router_id\": \"0.0.0.0\""), 4, BGP_PATH ".router_id",
		"an identifier as" },
	{ "router id of more", BGP("\"router_id\": \"1.2.3.256\""), 4, BGP_PATH ".router_id",
		"an identifier as" },
	{ "unknown key of bgp", BGP("\"asn\": 5"), 4, BGP_PATH ".asn", "known here are router_id" },
	{ "neighbour without AS", BGP("\"neighbors\": [{\"address\": \"fd5f::2\"}]"), 4,
		NEIGHBOR_PATH, "\"asn\" is missing" },
	{ "neighbour's address", BGP("\"neighbors\": [{\"address\": \"frr\", \"asn\": 7}]"), 4,
		NEIGHBOR_PATH ".address", "must be an IPv6 address" },
	{ "neighbour of ourselves", BGP("\"neighbors\": [{\"address\": \"fd5f::1\", \"asn\": 7}]"),
		4, NEIGHBOR_PATH ".address", "has no way to it" },
	{ "neighbour by our loopback",
		BGP("\"neighbors\": [{\"address\": \"fd5f:0:0:ff00::1\", \"asn\": 7}]"), 4,
		NEIGHBOR_PATH ".address", "has no way to it" },
	{ "neighbour nowhere", BGP("\"neighbors\": [{\"address\": \"2001:db8::1\", \"asn\": 7}]"),
		4, NEIGHBOR_PATH ".address", "subnet of one of its Ethernet ports" },
	{ "neighbour twice", NEIGHBOR("},\n{\"address\": \"fd5f::0:2\", \"asn\": 8"), 5,
		BGP_PATH ".neighbors[1].address", "duplicate neighbour" },
	{ "AS zero", BGP("\"neighbors\": [{\"address\": \"fd5f::2\", \"asn\": 0}]"), 4,
		NEIGHBOR_PATH ".asn", "must be 1 to" },
	{ "hold of a second", NEIGHBOR(", \"hold\": \"1s\""), 4, NEIGHBOR_PATH ".hold",
		"at least 3 s" },
	{ "hold of parts", NEIGHBOR(", \"hold\": \"3500ms\""), 4, NEIGHBOR_PATH ".hold",
		"whole seconds" },
	{ "hold too long", NEIGHBOR(", \"hold\": \"65536s\""), 4, NEIGHBOR_PATH ".hold",
		"out of bounds" },
	{ "restart too long", NEIGHBOR(", \"graceful_restart\": \"4096s\""), 4,
		NEIGHBOR_PATH ".graceful_restart", "out of bounds" },
	{ "empty key", NEIGHBOR(", \"md5\": \"\""), 4, NEIGHBOR_PATH ".md5", "1 to 80" },
	{ "long key", NEIGHBOR(", \"md5\": \"" LONG_NAME "\""), 4, NEIGHBOR_PATH ".md5",
		"1 to 80" },
	{ "key in UTF-8", NEIGHBOR(", \"md5\": \"\xc3\xbc\""), 4, NEIGHBOR_PATH ".md5",
		"printable ASCII" },
	{ "add-path word", NEIGHBOR(", \"add_path\": \"yes\""), 4, NEIGHBOR_PATH ".add_path",
		"none, receive, send, both" },
	{ "no path", NEIGHBOR(", \"max_paths\": 0"), 4, NEIGHBOR_PATH ".max_paths",
		"must be 1 to" },
	{ "rule without prefix", NEIGHBOR(", \"export\": [{}]"), 4, NEIGHBOR_PATH ".export[0]",
		"\"prefix\" is missing" },
	{ "prefix without length", NEIGHBOR(", \"import\": [{\"prefix\": \"2001:db8::\"}]"), 4,
		RULE_PATH ".prefix", "must be a prefix" },
	{ "prefix too long", NEIGHBOR(", \"import\": [{\"prefix\": \"2001:db8::/129\"}]"), 4,
		RULE_PATH ".prefix", "must be a prefix" },
	{ "prefix with host bits", NEIGHBOR(", \"import\": [{\"prefix\": \"2001:db8::/28\"}]"), 4,
		RULE_PATH ".prefix", "no bit set" },
	{ "ge below the prefix", RULE(", \"ge\": 31"), 4, RULE_PATH, "no prefix matches" },
	{ "le below ge", RULE(", \"ge\": 48, \"le\": 47"), 4, RULE_PATH, "no prefix matches" },
	{ "a denial that sets", RULE(", \"permit\": false, \"med\": 3"), 4, RULE_PATH,
		"sets nothing" },
	{ "originate without prefix", BGP("\"originate\": [{\"min_contributors\": 1}]"), 4,
		BGP_PATH ".originate[0]", "\"prefix\" is missing" },
	{ "originate an address", BGP("\"originate\": [{\"prefix\": \"fd5f::2/64\"}]"), 4,
		BGP_PATH ".originate[0].prefix", "must be a prefix" },
};

static const struct bad wrong_names[] = {
	{ "empty lab name", "{\"name\": \"\"}", 1, "name", "bad lab name \"\"" },
	{ "lab name a/b", "{\"name\": \"a/b\"}", 1, "name", "bad lab name \"a/b\"" },
	{ "lab name ..", "{\"name\": \"..\"}", 1, "name", "bad lab name" },
	{ "lab name with a dash", "{\"name\": \"a-b\"}", 1, "name", "bad lab name" },
	{ "lab name in UTF-8", "{\"name\": \"z\xc3\xbcrich\"}", 1, "name", "z\xc3\xbcrich" },
	{ "lab name of 300", "{\"name\": \"" NAME_300 "\"}", 1, "name", "aaa...\"" },
	{ "lab name of 33", "{\"name\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}", 1, "name",
		"1 to 32" },
	{ "node name a/b", NODES(",\n{\"name\": \"a/b\", \"role\": \"rdsw\"}]"), 8, "nodes[5].name",
		"bad node name \"a/b\"" },
	{ "node name ..", NODES(",\n{\"name\": \"..\", \"role\": \"rdsw\"}]"), 8, "nodes[5].name",
		"only a-z, 0-9" },
	{ "node name empty", NODES(",\n{\"name\": \"\", \"role\": \"rdsw\"}]"), 8, "nodes[5].name",
		"may not be empty" },
	{ "node name in UTF-8", NODES(",\n{\"name\": \"\xe2\x82\xac\", \"role\": \"rdsw\"}]"), 8,
		"nodes[5].name", "only a-z, 0-9" },
	{ "node name of 300", NODES(",\n{\"name\": \"" NAME_300 "\", \"role\": \"rdsw\"}]"), 8,
		"nodes[5].name", "at most 48" },
	{ "node name twice", NODES(",\n{\"name\": \"r0\", \"role\": \"fdsw\"}]"), 8,
		"nodes[5].name", "duplicate node name" },
	{ "node of a template again",
		LAB("\"nodes\": [{\"name\": \"b0-z0-h0\", \"role\": \"host\"}]"), 3,
		"nodes[0].name", "duplicate node name" },
	{ "zone name e",
		ZONED("{\"name\": \"e\", \"scaling_units\": 1, \"rails\": 1,"
		      "\"hosts_per_unit\": 1, \"fdsw\": 1}"),
		3, "buildings[0].zones[0].name", "edge PoD" },
	{ "zone name with a dash",
		ZONED("{\"name\": \"a-b\", \"scaling_units\": 1, \"rails\": 1,"
		      "\"hosts_per_unit\": 1, \"fdsw\": 1}"),
		3, "buildings[0].zones[0].name", "bad name" },
	{ "two zones of one name",
		"{\"name\": \"x\", \"buildings\": [{\"sdsw\": 1, \"zones\": [\n"
		"{\"name\": \"z\", \"scaling_units\": 1, \"rails\": 1, \"hosts_per_unit\": 1, "
		"\"fdsw\": 1},\n"
		"{\"name\": \"z\", \"scaling_units\": 1, \"rails\": 1, \"hosts_per_unit\": 1, "
		"\"fdsw\": 1}\n"
		"]}]}",
		3, "buildings[0].zones[1].name", "duplicate node name" },
};

static const struct bad wrong_nodes[] = {
	{ "role", NODES(",\n{\"name\": \"s\", \"role\": \"switch\"}]"), 8, "nodes[5].role",
		"must be one of rdsw" },
	{ "role missing", NODES(",\n{\"name\": \"s\"}]"), 8, "nodes[5]", "\"role\" is missing" },
	{ "host with a plane", NODES(",\n{\"name\": \"s\", \"role\": \"host\", \"plane\": 0}]"), 8,
		"nodes[5].plane", "role host has none" },
	{ "SDSW with a cluster", NODES(",\n{\"name\": \"s\", \"role\": \"sdsw\", \"cluster\": 0}]"),
		8, "nodes[5].cluster", "role sdsw has none" },
	{ "plane too high",
		NODES(",\n{\"name\": \"s\", \"role\": \"rdsw\", \"plane\": 3}],\n"
		      "\"planes\": 2"),
		8, "nodes[5].plane", "plane 3 of 2" },
	{ "address of an FDSW",
		NODES(",\n{\"name\": \"s\", \"role\": \"fdsw\", \"address\": \"::1\"}]"), 8,
		"nodes[5].address", "no loopback" },
	{ "no address",
		NODES(",\n{\"name\": \"s\", \"role\": \"rdsw\", \"address\": \"10.0.0.1\"}]"), 8,
		"nodes[5].address", "IPv6 address" },
	{ "address of another scheme",
		NODES(",\n{\"name\": \"s\", \"role\": \"rdsw\", \"address\": \"2001:db8::1\"}]"), 8,
		"nodes[5].address", "fd5f:PPBB" },
	{ "address of another plane",
		NODES(",\n{\"name\": \"s\", \"role\": \"rdsw\", \"address\": "
		      "\"fd5f:100:7:ff00::1\"}]"),
		8, "nodes[5].address", "\"fd5f:0:7:ff00::1\"" },
	{ "address twice",
		NODES(",\n{\"name\": \"s\", \"role\": \"rdsw\", \"address\": "
		      "\"fd5f:0:1:ff00::1\"}]"),
		8, "nodes[5].address", "r1 and s would both have it" },
	{ "switch index twice",
		NODES(",\n{\"name\": \"s\", \"role\": \"rdsw\", \"switch_index\": 1}]"), 8,
		"nodes[5].switch_index", "duplicate switch index 1" },
	{ "host without links", NODES("]"), 3, "nodes[0]", "host h0 has no links" },
	{ "switch without links", LINKED("],\n\"_\": [1") /* right so far */, 0, NULL, NULL },
	{ "empty nodes", "{\"name\": \"x\", \"nodes\": []}", 1, "(top)", "no nodes" },
	{ "zones without SDSWs",
		"{\"name\": \"x\", \"buildings\": [{\"sdsw\": 0, \"zones\": [" ZONE "," ZONE "]}]}",
		1, "buildings[0].sdsw", "can't reach each other" },
	{ "edge without SDSWs",
		"{\"name\": \"x\", \"buildings\": [{\"zones\": [" ZONE "],\n"
		"\"edge\": {\"edsw\": 1, \"fdsw\": 1}}]}",
		2, "buildings[0].edge", "SDSWs" },
	{ "super spine without edge", LAB("\"superspine\": {\"switches\": 2, \"per_edsw\": 1}"), 3,
		"superspine", "\"edge\"" },
	{ "more links than super spine",
		"{\"name\": \"x\", \"buildings\": [{\"sdsw\": 1, \"zones\": [" ZONE "],\n"
		"\"edge\": {\"edsw\": 1, \"fdsw\": 1}}],\n"
		"\"superspine\": {\"switches\": 2, \"per_edsw\": 3}}",
		3, "superspine.per_edsw", "3 of 2" },
};

/* An external node with keys more at line 8. */
#define EXTERNAL(more) NODES(",\n{\"name\": \"x\", \"role\": \"external\", " more "}]")
#define SHORTENED      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define WORDS_8        "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","

static const struct bad wrong_externals[] = {
	{ "command of a switch",
		NODES(",\n{\"name\": \"s\", \"role\": \"rdsw\", \"command\": [\"x\"]}]"), 8,
		"nodes[5].command", "only external nodes" },
	{ "files of a host", NODES(",\n{\"name\": \"s\", \"role\": \"host\", \"files\": {}}]"), 8,
		"nodes[5].files", "only external nodes" },
	{ "command as a string", EXTERNAL("\"command\": \"bird -f\""), 8, "nodes[5].command",
		"must be an array" },
	{ "empty command", EXTERNAL("\"command\": []"), 8, "nodes[5].command", "0 elements" },
	{ "command of 65 words",
		EXTERNAL("\"command\": [" WORDS_8 WORDS_8 WORDS_8 WORDS_8 WORDS_8 WORDS_8 WORDS_8
				WORDS_8 "\"a\"]"),
		8, "nodes[5].command", "65 elements: must be 1 to 64" },
	{ "a word that is none", EXTERNAL("\"command\": [\"bird\",\n7]"), 9, "nodes[5].command[1]",
		"words are strings" },
	{ "no program", EXTERNAL("\"command\": [\"\"]"), 8, "nodes[5].command[0]",
		"name of a program" },
	{ "files as an array", EXTERNAL("\"files\": [\"a\"]"), 8, "nodes[5].files",
		"must be an object" },
	{ "a file elsewhere", EXTERNAL("\"files\": {\n\"../passwd\": \"\"}"), 9,
		"nodes[5].files[\"../passwd\"]", "bad file name" },
	{ "a file below", EXTERNAL("\"files\": {\"a/b\": \"\"}"), 8, "nodes[5].files[\"a/b\"]",
		"bad file name" },
	{ "a hidden file", EXTERNAL("\"files\": {\".a\": \"\"}"), 8, "nodes[5].files[\".a\"]",
		"bad file name" },
	{ "a file without name", EXTERNAL("\"files\": {\"\": \"\"}"), 8, "nodes[5].files[\"\"]",
		"bad file name" },
	{ "a file with a long name", EXTERNAL("\"files\": {\"" LONG_NAME "\": \"\"}"), 8,
		"nodes[5].files[\"" SHORTENED "...\"]", "bad file name" },
	{ "a file twice", EXTERNAL("\"files\": {\"a\": \"\",\n\"a\": \"\"}"), 9, "nodes[5].files.a",
		"duplicate key" },
	{ "a file of numbers", EXTERNAL("\"files\": {\"a\": 7}"), 8, "nodes[5].files.a",
		"a string or an array" },
	{ "a line that is none", EXTERNAL("\"files\": {\"a\": [\"x\",\nnull]}"), 9,
		"nodes[5].files.a[1]", "lines are strings" },
};

static const struct bad wrong_links[] = {
	{ "no such node", LINKED(",\n{\"a\": \"h2:gpu0p0\", \"b\": \"r0:eth1\"}"), 13, "links[4].a",
		"no such node" },
	{ "no such node with a name of 300",
		LINKED(",\n{\"a\": \"" NAME_300 ":e\", \"b\": \"r0:eth1\"}"), 13, "links[4].a",
		"no such node" },
	{ "no interface", LINKED(",\n{\"a\": \"h0\", \"b\": \"r0:eth1\"}"), 13, "links[4].a",
		"NODE:INTERFACE" },
	{ "empty end", LINKED(",\n{\"a\": \"\", \"b\": \"r0:eth1\"}"), 13, "links[4].a",
		"NODE:INTERFACE" },
	{ "other end missing", LINKED(",\n{\"a\": \"h0:gpu1p0\"}"), 13, "links[4]",
		"\"b\" is missing" },
	{ "interface name", LINKED(",\n{\"a\": \"h0:en0\", \"b\": \"r0:eth1\"}"), 13, "links[4].a",
		"bad interface" },
	{ "interface eth01", LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth01\"}"), 13,
		"links[4].b", "bad interface" },
	{ "interface eth99999999999",
		LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth99999999999\"}"), 13, "links[4].b",
		"bad interface" },
	{ "interface eth63", LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth64\"}"), 13,
		"links[4]", "eth0 to eth62" },
	{ "interface of a host", LINKED(",\n{\"a\": \"h0:eth0\", \"b\": \"r0:eth1\"}"), 13,
		"links[4]", "gpu<rail>p<plane>" },
	{ "cells on eth", LINKED(",\n{\"a\": \"r0:eth1\", \"b\": \"f0:fab2\"}"), 13, "links[4]",
		"fab<number>" },
	{ "one port to itself", LINKED(",\n{\"a\": \"r0:fab1\", \"b\": \"r0:fab1\"}"), 13,
		"links[4].b", "two links on one port" },
	{ "a loop of packets", LINKED(",\n{\"a\": \"r0:eth1\", \"b\": \"r0:eth2\"}"), 13,
		"links[4].b", "to itself" },
	{ "expected of packets",
		LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth1\", \"expected_a\": "
		       "\"r0:eth2\"}"),
		13, "links[4].expected_a", "only ends of cell links" },
	{ "expected nobody",
		LINKED(",\n{\"a\": \"r0:fab1\", \"b\": \"f0:fab2\", \"expected_b\": "
		       "\"r9:fab0\"}"),
		13, "links[4].expected_b", "no such node" },
	{ "expected on eth",
		LINKED(",\n{\"a\": \"r0:fab1\", \"b\": \"f0:fab2\", \"expected_b\": "
		       "\"r0:eth0\"}"),
		13, "links[4].expected_b", "fab port" },
	{ "host to FDSW", LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"f0:fab2\"}"), 13, "links[4]",
		"wrong roles" },
	{ "RDSW to RDSW", LINKED(",\n{\"a\": \"r0:fab1\", \"b\": \"r1:fab1\"}"), 13, "links[4]",
		"wrong roles" },
	{ "kind", LINKED(",\n{\"a\": \"r0:fab1\", \"b\": \"f0:fab2\", \"kind\": \"gpu\"}"), 13,
		"links[4].kind", "wrong kind" },
	{ "two links on one port", LINKED(",\n{\"a\": \"r0:fab1\", \"b\": \"f0:fab1\"}"), 13,
		"links[4].b", "two links on one port: f0:fab1" },
	{ "the same link again", LINKED(",\n{\"b\": \"r0:fab0\", \"a\": \"f0:fab0\"}"), 13,
		"links[4].a", "two links on one port" },
	{ "rail gap", LINKED(",\n{\"a\": \"h0:gpu2p0\", \"b\": \"r0:eth1\"}"), 13, "links[4]",
		"no gpu1" },
	{ "wrong plane", LINKED(",\n{\"a\": \"h0:gpu1p1\", \"b\": \"r0:eth1\"}"), 13, "links[4]",
		"must be gpu1p0" },
	{ "rate zero", LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth1\", \"rate\": 0}"), 13,
		"links[4].rate", "must be 1000000 to" },
	{ "mtu", LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth1\", \"mtu\": 1280}"), 13,
		"links[4].mtu", "mtu 1280" },
	{ "unknown key", LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth1\", \"speed\": 1}"), 13,
		"links[4].speed", "unknown key" },
	{ "address that isn't derived",
		LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth1\", \"address_a\": \"fd5f::7\"}"),
		13, "links[4].address_a", "must be \"fd5f:0:0:100::2\"" },
	{ "MAC that isn't derived",
		LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth1\", \"mac_b\": \"0\"}"), 13,
		"links[4].mac_b", "must be \"02:00:00:00:00:01\"" },
	{ "system port that isn't derived",
		LINKED(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r0:eth1\", \"system_port\": 2}"), 13,
		"links[4].system_port", "must be 1 " },
	{ "address of a cell port",
		LINKED(",\n{\"a\": \"r0:fab1\", \"b\": \"f0:fab2\", \"address_b\": \"::1\"}"), 13,
		"links[4].address_b", "has none" },
};

/* Nodes of several places: lines 3 to 9. */
#define PLACES(more)                                                                               \
	"{\"name\": \"x\",\n\"nodes\": [\n"                                                        \
	"{\"name\": \"h0\", \"role\": \"host\"},\n"                                                \
	"{\"name\": \"r0\", \"role\": \"rdsw\"},\n"                                                \
	"{\"name\": \"r1\", \"role\": \"rdsw\", \"cluster\": 1},\n"                                \
	"{\"name\": \"f0\", \"role\": \"fdsw\"},\n"                                                \
	"{\"name\": \"f1\", \"role\": \"fdsw\", \"cluster\": 1},\n"                                \
	"{\"name\": \"s0\", \"role\": \"sdsw\"},\n"                                                \
	"{\"name\": \"p1\", \"role\": \"sdsw\", \"plane\": 1}],\n\"links\": [\n"                   \
	"{\"a\": \"h0:gpu0p0\", \"b\": \"r0:eth0\"},\n"                                            \
	"{\"a\": \"r0:fab0\", \"b\": \"f0:fab0\"},\n"                                              \
	"{\"a\": \"r1:fab0\", \"b\": \"f1:fab0\"},\n"                                              \
	"{\"a\": \"f0:fab1\", \"b\": \"s0:fab0\"}" more "]}"

static const struct bad wrong_places[] = {
	{ "node without links", PLACES(",\n{\"a\": \"f1:fab1\", \"b\": \"s0:fab1\"}"), 9,
		"nodes[6]", "sdsw p1 has no links" },
	{ "fabric link between clusters",
		PLACES(",\n{\"a\": \"r1:fab1\", \"b\": \"f0:fab2\"},\n"
		       "{\"a\": \"p1:fab0\", \"b\": \"f1:fab1\"}"),
		15, "links[4]", "clusters 1 and 0" },
	{ "spine link between planes", PLACES(",\n{\"a\": \"p1:fab0\", \"b\": \"f1:fab1\"}"), 15,
		"links[4]", "planes 0 and 1" },
	{ "host of two clusters", PLACES(",\n{\"a\": \"h0:gpu1p0\", \"b\": \"r1:eth0\"}"), 15,
		"links[4]", "all its links in one cluster" },
};

/* Hyperports: a right one at lines 9 and 10, then what is given. */
#define JOINED(more)                                                                               \
	"{\"name\": \"x\",\n\"nodes\": [\n"                                                        \
	"{\"name\": \"e0\", \"role\": \"edsw\"},\n"                                                \
	"{\"name\": \"s0\", \"role\": \"ssw\"},\n"                                                 \
	"{\"name\": \"f0\", \"role\": \"fdsw\"},\n"                                                \
	"{\"name\": \"x0\", \"role\": \"external\"}],\n\"links\": [\n"                             \
	"{\"a\": \"e0:fab0\", \"b\": \"f0:fab0\"},\n"                                              \
	"{\"a\": \"e0:eth0\", \"b\": \"s0:eth3\", \"hyperport\": true},\n"                         \
	"{\"a\": \"e0:eth1\", \"b\": \"s0:eth2\", \"hyperport\": true},\n"                         \
	"{\"a\": \"e0:eth9\", \"b\": \"x0:eth0\"}" more "]}"

static const struct bad wrong_hyperports[] = {
	{ "a hyperport", JOINED("") /* right */, 0, NULL, NULL },
	{ "a member of another rate",
		JOINED(",\n{\"a\": \"e0:eth2\", \"b\": \"s0:eth1\", \"hyperport\": true, "
		       "\"rate\": \"400G\"}"),
		12, "links[4].rate", "rate differs between members of the hyperport of e0 and s0" },
	{ "a member of another delay",
		JOINED(",\n{\"a\": \"s0:eth1\", \"b\": \"e0:eth2\", \"hyperport\": true, "
		       "\"delay\": \"3us\"}"),
		12, "links[4].delay", "delay differs" },
	{ "a member of another MTU",
		JOINED(",\n{\"a\": \"e0:eth2\", \"b\": \"s0:eth1\", \"hyperport\": true, "
		       "\"mtu\": 1500}"),
		12, "links[4].mtu", "mtu differs" },
	{ "a link beside a hyperport may differ",
		JOINED(",\n{\"a\": \"e0:eth2\", \"b\": \"s0:eth1\", \"rate\": \"400G\"}"), 0, NULL,
		NULL },
	{ "a hyperport of an external node",
		JOINED(",\n{\"a\": \"e0:eth2\", \"b\": \"x0:eth1\", \"hyperport\": true}"), 12,
		"links[4].hyperport", "only an EDSW and an SSW" },
	{ "an address of a member that stands for nothing",
		JOINED(",\n{\"a\": \"e0:eth2\", \"b\": \"s0:eth1\", \"hyperport\": true, "
		       "\"address_a\": \"fd5f:0:ff00:200::1\"}"),
		12, "links[4].address_a", "has none" },
};

/* f1 has no way up, so r1 is out of reach. */
static const struct bad unreachable[] = {
	{ "unreachable switch",
		"{\"name\": \"x\",\n\"nodes\": [\n"
		"{\"name\": \"r0\", \"role\": \"rdsw\"},\n"
		"{\"name\": \"r1\", \"role\": \"rdsw\"},\n"
		"{\"name\": \"f0\", \"role\": \"fdsw\"},\n"
		"{\"name\": \"f1\", \"role\": \"fdsw\"}],\n\"links\": [\n"
		"{\"a\": \"r0:fab0\", \"b\": \"f0:fab0\"},\n"
		"{\"a\": \"r1:fab0\", \"b\": \"f1:fab0\"}]}",
		3, "nodes[0]", "no way for cells from r0 to r1" },
	{ "one cluster over SDSWs only",
		"{\"name\": \"x\",\n\"nodes\": [\n"
		"{\"name\": \"r0\", \"role\": \"rdsw\"},\n"
		"{\"name\": \"r1\", \"role\": \"rdsw\"},\n"
		"{\"name\": \"f0\", \"role\": \"fdsw\"},\n"
		"{\"name\": \"f1\", \"role\": \"fdsw\"},\n"
		"{\"name\": \"s\", \"role\": \"sdsw\"}],\n\"links\": [\n"
		"{\"a\": \"r0:fab0\", \"b\": \"f0:fab0\"},\n"
		"{\"a\": \"r1:fab0\", \"b\": \"f1:fab0\"},\n"
		"{\"a\": \"f0:fab1\", \"b\": \"s:fab0\"},\n"
		"{\"a\": \"f1:fab1\", \"b\": \"s:fab1\"}]}",
		3, "nodes[0]", "no way for cells from r0 to r1" },
};

static void try(const struct bad *bad)
{
	struct topo_error err;
	struct topo *t = (struct topo *)(uintptr_t)1;
	int code = topo_load_text(bad->text, strlen(bad->text), "bad.json", &t, &err);
	char line[2048], want[2048];

	if (bad->path == NULL) { /* not bad at all: what the others are made from */
		TAP_EQ(code, 0, "%s: is right (%s)", bad->name, err.text);
		topo_free(t);
		return;
	}
	TAP_EQ(code, -DSF_E_BADFIELD, "%s: refused", bad->name);
	TAP_OK(t == NULL, "%s: nothing made", bad->name);
	if (!TAP_OK(err.line == bad->line && strcmp(err.path, bad->path) == 0 &&
			    strstr(err.text, bad->part) != NULL,
		    "%s: line, path, reason", bad->name))
		printf("# got %s\n", topo_error_line(&err, line, sizeof(line)));
	snprintf(want, sizeof(want), "bad.json:%u: %s: ", bad->line, bad->path);
	TAP_OK(strncmp(topo_error_line(&err, line, sizeof(line)), want, strlen(want)) == 0,
		"%s: error line", bad->name);
	if (code == 0)
		topo_free(t);
}

#define TRY_ALL(table)                                                                             \
	do {                                                                                       \
		for (size_t i = 0; i < sizeof(table) / sizeof((table)[0]); i++)                    \
			try(&(table)[i]);                                                          \
	} while (0)

static void nul_bytes_are_refused(void)
{
	static const char text[] = "{\"name\": \"a\0b\"}", between[] = "{\"name\":\n\0 \"ab\"}";
	struct topo_error err;
	struct topo *t;

	TAP_EQ(topo_load_text(text, sizeof(text) - 1, "x", &t, &err), -DSF_E_BADFIELD,
		"NUL in a string");
	TAP_OK(strstr(err.text, "NUL") != NULL && strcmp(err.path, "name") == 0, "it is named");
	TAP_EQ(topo_load_text(between, sizeof(between) - 1, "x", &t, &err), -DSF_E_BADFIELD,
		"NUL between values");
	TAP_EQ(err.line, 2, "its line");
}

int main(void)
{
	TRY_ALL(not_json);
	TRY_ALL(wrong_values);
	TRY_ALL(wrong_measures);
	TRY_ALL(wrong_bgp);
	TRY_ALL(wrong_names);
	TRY_ALL(wrong_nodes);
	TRY_ALL(wrong_externals);
	TRY_ALL(wrong_links);
	TRY_ALL(wrong_places);
	TRY_ALL(wrong_hyperports);
	TRY_ALL(unreachable);
	nul_bytes_are_refused();
	return TAP_DONE();
}
