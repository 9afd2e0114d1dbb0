/*
 * update.h - what is inside an UPDATE, and what to do about one that is wrong (RFC 7606)
 *
 * A wrong attribute costs as little as it may: it is left out (discard), or the routes that the
 * UPDATE names are withdrawn (treat-as-withdraw), or, where it isn't sure any more what the message
 * says, the session ends. Which attribute asks for what is RFC 7606 part 7, and the RFC of each
 * attribute that is younger.
 *
 * IPv6 unicast only: prefixes of other families are read over. NEXT_HOP, which is IPv4's, is too.
 */
#ifndef DSF_BGP_UPDATE_H
#define DSF_BGP_UPDATE_H
#include "bgp/attributes.h"
#include "bgp/wire.h"

/* A prefix; bits behind its length are 0. */
struct bgp_prefix_key {
	struct dsf_ip6 address;
	uint8_t length;
};

/* A prefix in an UPDATE. */
struct bgp_nlri {
	struct bgp_prefix_key key;
	uint32_t path_id; /* 0 without add-path */
};

struct bgp_span {
	const uint8_t *bytes;
	size_t size;
};

static inline struct dsf_cursor bgp_span_read(struct bgp_span s)
{
	return (struct dsf_cursor){ s.bytes, s.bytes == NULL ? NULL : s.bytes + s.size, false };
}

/* What was agreed on with the sender. */
struct bgp_update_rules {
	bool external;       /* eBGP */
	bool as4;            /* it sends 4-octet AS numbers */
	bool add_path;       /* it sends path ids */
	uint32_t as;         /* its AS */
	uint8_t *scratch;    /* where AS paths of 2-octet numbers are written longer */
	size_t scratch_size; /* twice the largest message is always enough */
};

struct bgp_update {
	struct bgp_attributes attributes; /* borrowed from the message and the scratch */
	struct bgp_span reach, unreach;   /* IPv6 unicast, read with bgp_nlri_decode; all right */
	struct dsf_ip6 next_hop;          /* global; of reach */
	bool withdraw;                    /* an error: the routes of reach are withdrawn instead */
	bool end_of_rib;                  /* of IPv6 unicast, RFC 4724 2 */
	uint32_t discarded;               /* attributes that were left out */
};

/* 0, or -DSF_E_PEER with *n to send. */
int bgp_update_decode(const uint8_t *body, size_t size, const struct bgp_update_rules *rules,
	struct bgp_update *u, struct bgp_notification *n);

/* The next prefix; false at the end, with in->failed set where the bytes are wrong. */
bool bgp_nlri_decode(struct dsf_cursor *in, bool add_path, struct bgp_nlri *nlri);

void bgp_nlri_encode(struct dsf_writer *w, bool add_path, const struct bgp_nlri *nlri);

#define BGP_NLRI_SIZE_MAX 21u /* path id 4, length 1, address 16 */

/* An UPDATE that is being written: prefixes that share attributes, or that are withdrawn. The
 * message lies in the caller's room of cap bytes, at most 65535. */
struct bgp_update_writer {
	uint8_t *start;
	struct dsf_writer w;
	uint8_t *value_size; /* of the MP attribute under way */
	bool add_path;
	struct bgp_span rest; /* attributes that follow the prefixes */
};

/* Announces prefixes with next_hop; attributes are in canonical form (of 2-octet AS numbers for a
 * peer that knows no others: bgp_update_as2). False when not one prefix would fit. */
bool bgp_update_reach(struct bgp_update_writer *u, uint8_t *to, size_t cap, bool add_path,
	const struct dsf_ip6 *next_hop, const uint8_t *attributes, size_t attributes_size);

/* Withdraws prefixes. */
void bgp_update_unreach(struct bgp_update_writer *u, uint8_t *to, size_t cap, bool add_path);

/* False, and nothing changed: the message is full. */
bool bgp_update_add(struct bgp_update_writer *u, const struct bgp_nlri *nlri);

/* Ends the message; returns its size. Without prefixes a withdrawal is an End-of-RIB. */
size_t bgp_update_finish(struct bgp_update_writer *u);

/* Canonical attributes for a peer of 2-octet AS numbers: AS4_PATH and AS4_AGGREGATOR where the old
 * ones can't say it (RFC 6793 4.2.2). Returns the size, 0 when to has no room for it. */
size_t bgp_update_as2(uint8_t *to, size_t cap, const uint8_t *attributes, size_t size);

#endif
