/*
 * list.h - doubly linked lists through a member of their entries
 *
 * The head is a link too; a zeroed link is in no list, so a zeroed struct is ready.
 */
#ifndef DSF_METAROCE_LIST_H
#define DSF_METAROCE_LIST_H
#include <stdbool.h>
#include <stddef.h>

struct metaroce_link {
	struct metaroce_link *previous, *next;
};

static inline void metaroce_list_init(struct metaroce_link *head)
{
	head->previous = head->next = head;
}

static inline bool metaroce_list_linked(const struct metaroce_link *link)
{
	return link->next != NULL;
}

static inline bool metaroce_list_empty(const struct metaroce_link *head)
{
	return head->next == head;
}

/* Puts link last; nothing happens when it is in a list. */
static inline void metaroce_list_push(struct metaroce_link *head, struct metaroce_link *link)
{
	if (metaroce_list_linked(link))
		return;
	link->previous = head->previous;
	link->next = head;
	head->previous->next = link;
	head->previous = link;
}

/* Takes link out of its list; nothing happens when it is in none. */
static inline void metaroce_list_remove(struct metaroce_link *link)
{
	if (!metaroce_list_linked(link))
		return;
	link->previous->next = link->next;
	link->next->previous = link->previous;
	link->previous = link->next = NULL;
}

/* First entry, or NULL. */
static inline struct metaroce_link *metaroce_list_first(const struct metaroce_link *head)
{
	return head->next == head ? NULL : head->next;
}

#endif
