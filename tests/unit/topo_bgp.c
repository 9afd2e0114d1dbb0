/*
 * Who speaks BGP with whom: neighbours of the file and those that follow from the topology.
 */
#include <string.h>
#include "tests/source.h"
#include "tests/tap.h"
#include "topo/bgp.h"

struct want {
	enum topo_bgp_kind kind;
	const char *node, *address, *local;
	uint32_t asn;
};

static void check(const struct topo *t, const char *name, const struct want *want, uint32_t count)
{
	uint32_t node = topo_find_node(t, name), i = 0;
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;

	for (; topo_bgp_next(t, node, &walk, &peer); i++) {
		char address[DSF_IP6_TEXT_MAX], local[DSF_IP6_TEXT_MAX];

		if (i >= count)
			continue;
		dsf_ip6_text(&peer.address, address);
		dsf_ip6_text(&peer.local, local);
		TAP_EQ(peer.kind, want[i].kind, "%s: kind of neighbour %u", name, i);
		TAP_OK(strcmp(t->nodes[peer.node].name, want[i].node) == 0, "%s: %u is %s", name, i,
			want[i].node);
		TAP_OK(strcmp(address, want[i].address) == 0, "%s: %u at %s, not %s", name, i,
			want[i].address, address);
		TAP_OK(strcmp(local, want[i].local) == 0, "%s: %u from %s, not %s", name, i,
			want[i].local, local);
		TAP_EQ(peer.asn, want[i].asn, "%s: AS of %u", name, i);
		TAP_EQ(peer.given != NULL, want[i].kind == TOPO_BGP_GIVEN, "%s: %u", name, i);
	}
	TAP_EQ(i, count, "%s: neighbours", name);
}

#define CHECK(t, name, want) check(t, name, want, sizeof(want) / sizeof((want)[0]))
#define OWN                  4200000000u

static void neighbours_of_file_and_topology(void)
{
	static const struct want rdsw0[] = {
		{ TOPO_BGP_GIVEN, "frr", "fd5f:0:0:100::2", "fd5f:0:0:100::1", 65010 },
		{ TOPO_BGP_GIVEN, "b0-z0-p0-rdsw1", "fd5f:0:1:ff00::1", "fd5f:0:0:ff00::1", OWN },
		{ TOPO_BGP_INTERNAL, "b0-e-p0-edsw0", "fd5f:0:ff00:ff00::1", "fd5f:0:0:ff00::1",
			OWN },
	};
	/* The session with the EDSW is the file's here. */
	static const struct want rdsw1[] = {
		{ TOPO_BGP_GIVEN, "b0-z0-p0-rdsw0", "fd5f:0:0:ff00::1", "fd5f:0:1:ff00::1", OWN },
		{ TOPO_BGP_GIVEN, "b0-e-p0-edsw0", "fd5f:0:ff00:ff00::1", "fd5f:0:1:ff00::1", OWN },
	};
	static const struct want edsw[] = {
		{ TOPO_BGP_LINK, "p0-ssw0", "fd5f:0:ff00::2", "fd5f:0:ff00::1", 4200065536u },
		{ TOPO_BGP_INTERNAL, "b0-z0-p0-rdsw0", "fd5f:0:0:ff00::1", "fd5f:0:ff00:ff00::1",
			OWN },
		{ TOPO_BGP_INTERNAL, "b0-z0-p0-rdsw1", "fd5f:0:1:ff00::1", "fd5f:0:ff00:ff00::1",
			OWN },
	};
	static const struct want ssw[] = { { TOPO_BGP_LINK, "b0-e-p0-edsw0", "fd5f:0:ff00::1",
		"fd5f:0:ff00::2", OWN } };
	struct topo *t = source_topo("tests/topologies/bgp.json");
	const struct topo_bgp *bgp = &t->bgp[t->nodes[topo_find_node(t, "b0-z0-p0-rdsw0")].bgp];
	const struct topo_bgp_neighbor *frr = &t->bgp_neighbors[bgp->first_neighbor];
	const struct topo_bgp_rule *rules = &t->bgp_rules[frr->import.first];

	CHECK(t, "b0-z0-p0-rdsw0", rdsw0);
	CHECK(t, "b0-z0-p0-rdsw1", rdsw1);
	CHECK(t, "b0-e-p0-edsw0", edsw);
	CHECK(t, "p0-ssw0", ssw);
	check(t, "frr", NULL, 0);
	check(t, "b0-z0-p0-fdsw0", NULL, 0);
	TAP_EQ(bgp->router_id, 0x0a000001u, "router id of the file");
	TAP_EQ(topo_bgp_router_id(t, topo_find_node(t, "b0-e-p0-edsw0")), 0x0100ff00u,
		"router id of the loopback");
	TAP_OK(frr->passive && frr->hold_s == 9 && frr->restart_s == 0 && frr->paths_max == 1000 &&
			frr->add_path == TOPO_BGP_ADD_PATH_BOTH && !frr->next_hop_self &&
			strcmp(frr->md5, "a \"key\" with \\") == 0,
		"settings of a neighbour");
	TAP_OK(frr[1].hold_s == 90 && frr[1].restart_s == 120 && frr[1].next_hop_self &&
			frr[1].md5[0] == '\0' && frr[1].add_path == TOPO_BGP_ADD_PATH_NONE,
		"and what is left out");
	TAP_OK(frr->import.count == 3 && frr->export.given && frr->export.count == 0 &&
			!frr[1].import.given,
		"policies");
	TAP_OK(rules[0].length_min == 48 && rules[0].length_max == 64 && rules[0].permit &&
			rules[0].set_med && rules[0].local_pref == 200,
		"a rule");
	TAP_OK(rules[1].length_min == 32 && rules[1].length_max == 32 && !rules[1].permit,
		"a rule for a prefix alone");
	TAP_OK(rules[2].length_min == 0 && rules[2].length_max == 128, "a rule for all");
	TAP_OK(bgp->origins_count == 2 &&
			t->bgp_origins[bgp->first_origin + 1].contributors_min == 2,
		"own prefixes");
	topo_free(t);
}

/* Both ends name each other, and no node two neighbours of one address. */
static void sessions_have_two_ends(const char *name, uint32_t want)
{
	struct topo *t = source_topo(name);
	uint32_t count = 0, matched = 0;

	for (uint32_t i = 0; i < t->nodes_count; i++) {
		struct topo_bgp_walk walk = { 0 };
		struct topo_bgp_peer peer, back;

		for (; topo_bgp_next(t, i, &walk, &peer); count++) {
			struct topo_bgp_walk far = { 0 };

			while (topo_bgp_next(t, peer.node, &far, &back))
				matched += back.node == i &&
					   dsf_ip6_equal(&back.address, &peer.local) &&
					   dsf_ip6_equal(&back.local, &peer.address) &&
					   back.asn == t->nodes[i].asn;
		}
	}
	TAP_EQ(count, want, "%s: ends of sessions", name);
	TAP_EQ(matched, want, "%s: each has another", name);
	topo_free(t);
}

int main(void)
{
	neighbours_of_file_and_topology();
	/* two planes: 2 EDSWs x 4 RDSWs, 3 x 2; each EDSW 2 SSWs by a hyperport of 2 links */
	sessions_have_two_ends(
		"tests/topologies/region.json", 2 * (2 * (2 * 4 + 3 * 2) + 2 * (2 + 3) * 2));
	/* 2 x 1 EDSW and RDSW; 2 hyperports; one more and 2 links to another router */
	sessions_have_two_ends("tests/topologies/hyperport.json", 2 * (2 + 5));
	/* 8 fabric, 10 spine, 1 edge PoD, 1 edge link */
	sessions_have_two_ends("tests/topologies/ecmp.json", 2 * 20);
	return TAP_DONE();
}
