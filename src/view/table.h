/*
 * table.h - an array of JSON objects as aligned text
 */
#ifndef DSF_VIEW_TABLE_H
#define DSF_VIEW_TABLE_H
#include <stddef.h>
#include <cjson/cJSON.h>

enum view_table_format {
	VIEW_TABLE_PLAIN, /* text as it is, numbers as decimal digits, lists joined by commas */
	VIEW_TABLE_RATE,  /* bit/s: 400G; 0: unlimited */
	VIEW_TABLE_TIME,  /* ns: 1.5us */
	VIEW_TABLE_FEW,   /* as PLAIN, of lists only the first ones */
};

struct view_table_column {
	const char *title;
	const char *key;
	enum view_table_format format;
};

/* One line a row below a line of titles; numbers to the right, the rest to the left, null and
 * absent members as "-", yes and no. malloc'd; NULL when memory is short. */
char *view_table_text(const cJSON *rows, const struct view_table_column *columns, size_t count);

/* The members of an object in words, by the units that their keys end with: "loss 1 %, delay 10 us,
 * silent". malloc'd; NULL when memory is short. */
char *view_members_text(const cJSON *object);

#endif
