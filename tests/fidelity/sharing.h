/* SPDX-License-Identifier: Apache-2.0 */
/* What sharing.c and pool_sharing.c have in common. */
#ifndef FIDELITY_SHARING_H
#define FIDELITY_SHARING_H

/* How many descriptors the process has open. */
int open_descriptors(void);
/* The descriptor of a new pool that is gone by now. */
int shared_pool_descriptor(void);

/* Errands with pools of a first process, for the second one. */
void pool_errand(void);
void pool_twice_errand(void);
void pool_freed_first_errand(void);
void pool_host_errand(void);
void pool_host_twice_errand(void);

#endif
