/*
 * descriptors.h - how many descriptors this process has open, to find those that are left behind
 */
#ifndef DSF_TESTS_DESCRIPTORS_H
#define DSF_TESTS_DESCRIPTORS_H
#include <dirent.h>
#include <stddef.h>

static inline unsigned descriptors_count(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	while (directory != NULL && readdir(directory) != NULL)
		count++;
	if (directory != NULL)
		closedir(directory);
	return count;
}

#endif
