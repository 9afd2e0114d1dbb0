/*
 * address.h - IPv6 and MAC addresses as values
 */
#ifndef DSF_BASE_ADDRESS_H
#define DSF_BASE_ADDRESS_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct dsf_ip6 {
	uint8_t bytes[16];
};

struct dsf_mac {
	uint8_t bytes[6];
};

#define DSF_IP6_TEXT_MAX 46 /* bytes with the final zero, RFC 4291 2.2 in its longest form */
#define DSF_MAC_TEXT_MAX 18

static inline bool dsf_ip6_equal(const struct dsf_ip6 *a, const struct dsf_ip6 *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool dsf_ip6_is_multicast(const struct dsf_ip6 *a)
{
	return a->bytes[0] == 0xff;
}

static inline bool dsf_ip6_is_unspecified(const struct dsf_ip6 *a)
{
	static const struct dsf_ip6 unspecified = { { 0 } };

	return memcmp(a, &unspecified, sizeof(*a)) == 0;
}

static inline bool dsf_ip6_is_link_local(const struct dsf_ip6 *a)
{
	return a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

/* fe80::/64 address made from a MAC as RFC 4291 appendix A says. */
struct dsf_ip6 dsf_ip6_link_local(const struct dsf_mac *mac);

/* RFC 5952 text into text[DSF_IP6_TEXT_MAX]; returns text. */
char *dsf_ip6_text(const struct dsf_ip6 *a, char *text);

/* 0, or -DSF_E_BADFIELD when text is no IPv6 address (no zone, no prefix length, no IPv4 tail). */
int dsf_ip6_parse(const char *text, struct dsf_ip6 *a);

/* "02:..." into text[DSF_MAC_TEXT_MAX]; returns text. */
char *dsf_mac_text(const struct dsf_mac *mac, char *text);

#endif
