/* trace/number.h: whole and decimal numbers out of text that may be anything. */
#ifndef KVKEEP_TRACE_NUMBER_H
#define KVKEEP_TRACE_NUMBER_H

#include <stdint.h>

/* Reads a whole number of 0 .. max that fills `text`: digits only. Returns NULL, or what is wrong with it ("is
 * negative"). */
const char *number_whole(const char *text, uint64_t max, uint64_t *out);

/* Reads a finite decimal number of at least 0 that fills `text`. Returns NULL, or what is wrong with it. */
const char *number_decimal(const char *text, double *out);

#endif
