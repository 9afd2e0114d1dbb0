/*
 * memory.h - core memory from malloc
 *
 * Cores are handed their memory. This is the one that drivers, the CLI and this folder hand out; it
 * stands here because topo is the lowest folder that may use malloc.
 */
#ifndef DSF_TOPO_MEMORY_H
#define DSF_TOPO_MEMORY_H
#include "base/memory.h"

extern const struct dsf_memory topo_memory;

#endif
