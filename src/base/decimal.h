/* base/decimal.h: doubles as text and back, exactly, whatever the locale. */
#ifndef KVK_BASE_DECIMAL_H
#define KVK_BASE_DECIMAL_H

#include <stddef.h>

#define DECIMAL_BYTES 32u /* of a written number, its 0 included */
#define DECIMAL_READ_MAX 64u

/* Reads what fills text[length]: -digits[.digits][e+-digits], fewer than DECIMAL_READ_MAX. Returns 0 if it is no number
 * or too large for one. */
int decimal_read(const char *text, size_t length, double *out);

/* Writes a finite number with as few digits as read back the same. Returns the length. */
size_t decimal_write(double value, char *text);

#endif
