/*
 * reach.h - who can reach whom over cells, from the wiring alone
 *
 * The rule is the fabric's own (valley-free): an FDSW tells of the interface nodes that it hears
 * directly to its others and to the SDSWs; an SDSW tells a cluster only of other clusters'.
 */
#ifndef DSF_TOPO_REACH_H
#define DSF_TOPO_REACH_H
#include <stdint.h>
#include "topo/model.h"

/* 0 when within each fabric (building and plane) every interface node reaches all others; 1 and one
 * pair that doesn't; or -DSF_E_NOMEM. */
int topo_reach_check(const struct topo *t, uint32_t *from, uint32_t *to);

#endif
