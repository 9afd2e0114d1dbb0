#include "base/address.h"
#include "base/err.h"

static const char hex[] = "0123456789abcdef";

struct dsf_ip6 dsf_ip6_link_local(const struct dsf_mac *mac)
{
	struct dsf_ip6 a = { { 0xfe, 0x80 } };

	memcpy(&a.bytes[8], mac->bytes, 3);
	a.bytes[8] ^= 0x02;
	a.bytes[11] = 0xff;
	a.bytes[12] = 0xfe;
	memcpy(&a.bytes[13], mac->bytes + 3, 3);
	return a;
}

static char *put_hex16(char *at, uint16_t value)
{
	bool started = false;

	for (int shift = 12; shift >= 0; shift -= 4) {
		unsigned digit = value >> shift & 15u;

		started = started || digit != 0 || shift == 0;
		if (started)
			*at++ = hex[digit];
	}
	return at;
}

/* The longest run of two or more zero groups, the first of equals: RFC 5952 4.2. */
static void longest_zero_run(const uint16_t *group, int *first, int *count)
{
	*first = -1;
	*count = 1;
	for (int i = 0; i < 8; i++) {
		int run = 0;

		while (i + run < 8 && group[i + run] == 0)
			run++;
		if (run > *count) {
			*first = i;
			*count = run;
		}
		i += run;
	}
}

char *dsf_ip6_text(const struct dsf_ip6 *a, char *text)
{
	uint16_t group[8];
	char *at = text;
	int zero_first, zero_count;

	for (int i = 0; i < 8; i++)
		group[i] = (uint16_t)(a->bytes[2 * i] << 8 | a->bytes[2 * i + 1]);
	longest_zero_run(group, &zero_first, &zero_count);
	for (int i = 0; i < 8; i++) {
		if (i == zero_first) {
			*at++ = ':';
			*at++ = ':';
			i += zero_count - 1;
			continue;
		}
		if (at != text && at[-1] != ':')
			*at++ = ':';
		at = put_hex16(at, group[i]);
	}
	*at = '\0';
	return text;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One group of 1 to 4 hex digits; returns its end or NULL. */
static const char *parse_group(const char *at, uint16_t *value)
{
	int digits = 0;

	*value = 0;
	for (; hex_digit(*at) >= 0; at++, digits++) {
		if (digits == 4)
			return NULL;
		*value = (uint16_t)(*value << 4 | hex_digit(*at));
	}
	return digits > 0 ? at : NULL;
}

int dsf_ip6_parse(const char *text, struct dsf_ip6 *a)
{
	uint16_t group[8] = { 0 };
	int count = 0, gap = -1;
	const char *at = text;

	if (at[0] == ':' && at[1] != ':')
		return -DSF_E_BADFIELD;
	while (*at != '\0') {
		if (at[0] == ':' && at[1] == ':') {
			if (gap >= 0)
				return -DSF_E_BADFIELD;
			gap = count;
			at += 2;
			continue;
		}
		if (count == 8)
			return -DSF_E_BADFIELD;
		if (count > 0 && gap != count) {
			if (*at++ != ':')
				return -DSF_E_BADFIELD;
		}
		at = parse_group(at, &group[count]);
		if (at == NULL)
			return -DSF_E_BADFIELD;
		count++;
	}
	if (gap < 0 ? count != 8 : count > 7)
		return -DSF_E_BADFIELD;
	memset(a, 0, sizeof(*a));
	for (int i = 0; i < count; i++) {
		int slot = gap < 0 || i < gap ? i : 8 - count + i;

		a->bytes[2 * slot] = (uint8_t)(group[i] >> 8);
		a->bytes[2 * slot + 1] = (uint8_t)group[i];
	}
	return 0;
}

char *dsf_mac_text(const struct dsf_mac *mac, char *text)
{
	for (int i = 0; i < 6; i++) {
		text[3 * i] = hex[mac->bytes[i] >> 4];
		text[3 * i + 1] = hex[mac->bytes[i] & 15];
		text[3 * i + 2] = i == 5 ? '\0' : ':';
	}
	return text;
}
