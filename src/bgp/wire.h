/*
 * wire.h - BGP messages as bytes: header, OPEN, NOTIFICATION, KEEPALIVE, ROUTE-REFRESH
 *
 * What is inside an UPDATE is in update.h. Decoders never trust a length; what they refuse they
 * refuse with the NOTIFICATION that the RFC names for it, ready to be sent. We speak IPv6 unicast
 * and nothing else; other address families of a peer are read over.
 *
 * RFC 4271 (messages), 5492 (capabilities), 4760, 6793, 7911, 2918, 7313, 4724, 8654, 9072, 9003.
 */
#ifndef DSF_BGP_WIRE_H
#define DSF_BGP_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BGP_PORT                 179
#define BGP_VERSION              4
#define BGP_HEADER_SIZE          19u
#define BGP_MESSAGE_MAX          4096u  /* RFC 4271 4.1 */
#define BGP_MESSAGE_EXTENDED_MAX 65535u /* RFC 8654 3 */
#define BGP_AS_TRANS             23456u /* RFC 6793 9 */
#define BGP_AFI_IPV6             2u
#define BGP_SAFI_UNICAST         1u
#define BGP_DATA_MAX             256u /* data of a NOTIFICATION that we make or look at */
#define BGP_TEXT_MAX             255u /* RFC 9003 2: octets of a shutdown communication */

enum bgp_type {
	BGP_OPEN = 1,
	BGP_UPDATE,
	BGP_NOTIFICATION,
	BGP_KEEPALIVE,
	BGP_ROUTE_REFRESH,
};

/* RFC 4271 4.5, 7313 5 */
enum bgp_code {
	BGP_ERR_HEADER = 1,
	BGP_ERR_OPEN,
	BGP_ERR_UPDATE,
	BGP_ERR_HOLD,
	BGP_ERR_STATE,
	BGP_ERR_CEASE,
	BGP_ERR_REFRESH,
};

enum bgp_header_error { BGP_HEADER_MARKER = 1, BGP_HEADER_LENGTH, BGP_HEADER_TYPE };

enum bgp_open_error {
	BGP_OPEN_UNSPECIFIC = 0,
	BGP_OPEN_VERSION = 1,
	BGP_OPEN_PEER_AS = 2,
	BGP_OPEN_IDENTIFIER = 3,
	BGP_OPEN_PARAMETER = 4,
	BGP_OPEN_HOLD = 6,
	BGP_OPEN_CAPABILITY = 7, /* RFC 5492 5: one that we need is missing */
};

enum bgp_update_error {
	BGP_UPDATE_LIST = 1,
	BGP_UPDATE_WELL_KNOWN = 2,
	BGP_UPDATE_MISSING = 3,
	BGP_UPDATE_FLAGS = 4,
	BGP_UPDATE_LENGTH = 5,
	BGP_UPDATE_ORIGIN = 6,
	BGP_UPDATE_NEXT_HOP = 8,
	BGP_UPDATE_OPTIONAL = 9,
	BGP_UPDATE_NETWORK = 10,
	BGP_UPDATE_AS_PATH = 11,
};

/* RFC 6608 4 */
enum bgp_state_error { BGP_STATE_OPEN_SENT = 1, BGP_STATE_OPEN_CONFIRM, BGP_STATE_ESTABLISHED };

/* RFC 4486 4 */
enum bgp_cease {
	BGP_CEASE_PREFIXES = 1,
	BGP_CEASE_SHUTDOWN,
	BGP_CEASE_UNCONFIGURED,
	BGP_CEASE_RESET,
	BGP_CEASE_REJECTED,
	BGP_CEASE_CHANGED,
	BGP_CEASE_COLLISION,
	BGP_CEASE_RESOURCES,
};

struct bgp_notification {
	uint8_t code, subcode; /* code 0: none */
	uint16_t size;         /* of data; more than BGP_DATA_MAX is cut */
	uint8_t data[BGP_DATA_MAX];
};

/* Fills n; returns -DSF_E_PEER, so that decoders end with it. data may be NULL at size 0. */
int bgp_wire_refuse(
	struct bgp_notification *n, uint8_t code, uint8_t subcode, const void *data, size_t size);

struct bgp_header {
	uint8_t type;  /* enum bgp_type */
	uint16_t size; /* of the whole message */
};

/* Looks at the first bytes of a stream. 1: a header, and all that can be said from it is right; 0:
 * too few bytes yet; -DSF_E_PEER with *n to send. extended: RFC 8654 was agreed on. */
int bgp_wire_header_decode(const uint8_t *bytes, size_t size, bool extended, struct bgp_header *h,
	struct bgp_notification *n);

#define BGP_ADD_PATH_RECEIVE 1u
#define BGP_ADD_PATH_SEND    2u

#define BGP_RESTART_TIME_MAX 4095u /* seconds: 12 bits, RFC 4724 3 */

/* An OPEN with the capabilities that mean something to us. */
struct bgp_open {
	uint32_t as;      /* of 4 octets, from the capability where there is one; never 0 */
	uint16_t hold_s;  /* 0, or at least 3 */
	uint32_t id;      /* BGP identifier; never 0 (RFC 6286) */
	bool ipv6;        /* multiprotocol, IPv6 unicast */
	bool as4;         /* RFC 6793 */
	bool refresh;     /* RFC 2918 */
	bool enhanced;    /* RFC 7313 */
	bool extended;    /* RFC 8654 */
	uint8_t add_path; /* BGP_ADD_PATH_*: what the sender of the OPEN wants to do */
	bool graceful;    /* RFC 4724 */
	bool restarting;  /* its R bit */
	uint16_t restart_s;
	bool graceful_ipv6; /* its list has IPv6 unicast */
	bool forwarding;    /* and the F bit: what it forwarded was kept */
};

/* Message bodies are what follows the header. Encoders write a whole message into room for
 * BGP_MESSAGE_MAX and return its size. */
size_t bgp_wire_open_encode(uint8_t *to, const struct bgp_open *o);

/* 0, or -DSF_E_PEER with *n to send. */
int bgp_wire_open_decode(
	const uint8_t *body, size_t size, struct bgp_open *o, struct bgp_notification *n);

size_t bgp_wire_keepalive_encode(uint8_t *to);

size_t bgp_wire_notification_encode(uint8_t *to, const struct bgp_notification *n);

/* Never fails: what can't be read is code 0. */
void bgp_wire_notification_decode(const uint8_t *body, size_t size, struct bgp_notification *n);

/* Adds a shutdown communication to a Cease (subcodes shutdown and reset); cut to BGP_TEXT_MAX
 * octets at the border of a character. */
void bgp_wire_text_set(struct bgp_notification *n, const char *text);

/* The shutdown communication of a received Cease into text[BGP_TEXT_MAX + 1]. False, and text
 * empty: there is none, its length is wrong, it isn't UTF-8, or it has control characters. */
bool bgp_wire_text(const struct bgp_notification *n, char *text);

enum bgp_refresh_subtype { BGP_REFRESH_REQUEST, BGP_REFRESH_BEGIN, BGP_REFRESH_END };

struct bgp_refresh {
	uint16_t afi;
	uint8_t subtype; /* enum bgp_refresh_subtype; others are to be ignored */
	uint8_t safi;
};

size_t bgp_wire_refresh_encode(uint8_t *to, enum bgp_refresh_subtype subtype);

/* 0, or -DSF_E_PEER with *n to send (RFC 7313 5). */
int bgp_wire_refresh_decode(
	const uint8_t *body, size_t size, struct bgp_refresh *r, struct bgp_notification *n);

/* Writes the header of a message of size bytes. */
void bgp_wire_header_encode(uint8_t *to, enum bgp_type type, size_t size);

#endif
