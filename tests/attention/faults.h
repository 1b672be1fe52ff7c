/* faults.h: faults that attention of other servers and libraries had in the field, each as a case that every version is
 * to pass.
 *
 * Some faults are not attention's, but of who hands out pages and takes masses:
 *     a page evicted and taken by another in the same step (1bit-MONSTER#22): a_page_in_flight_waits_in_limbo in
 *         policy/test_taint.c, a_page_in_limbo_can_be_found_and_used_again in unit/test_api_batches.c; with K and V in
 *         attention/test_step.c
 *     masses that come when the page has a new owner: masses_of_lost_pages_are_dropped and the two tests before it in
 *         policy/test_masses.c
 *     a table that changes while a batch reads it (TensorRT-LLM#15546): unit/test_field_faults.c has
 *         a_batch_keeps_its_buffers_and_each_group_its_place; device/test_plan.c arguments_may_change_after_a_call */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include "attention/grid.h"

/* Faults that a shape shows, named after what must hold. Queries are f32 where the caller changes nothing. */
uint32_t fault_count(void);
grid_shape fault_shape(uint32_t fault);

/* What they are made of: two texts of 54 and 97 tokens, f16 in pages of 16, two KV heads of 64 for four heads each. */
grid_shape fault_usual(void);

/* Faults that a shape does not show. Each ends the test if the version has it. */
void fault_newest_page(kvk_dtype q_dtype, grid_version version, void *ctx);
void fault_no_page(kvk_dtype q_dtype, grid_version version, void *ctx);

#endif
