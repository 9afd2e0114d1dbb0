#include "base/utf8.h"

unsigned dsf_utf8_size(const uint8_t *text, size_t size)
{
	uint32_t value = text[0];
	unsigned count = value < 0x80   ? 1
			 : value < 0xc2 ? 0
			 : value < 0xe0 ? 2
			 : value < 0xf0 ? 3
					: 4;

	if (value > 0xf4 || count == 0 || count > size)
		return 0;
	if (count > 1)
		value &= 0x7fu >> count;
	for (unsigned i = 1; i < count; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (text[i] & 0x3fu);
	}
	if ((count == 3 && (value < 0x800 || value >> 11 == 0x1b)) ||
		(count == 4 && (value < 0x10000 || value > 0x10ffff)))
		return 0;
	return count;
}
