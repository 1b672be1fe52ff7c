/* fuzz_lengths.c: the input is a text of lengths and probabilities. What is read must only draw lengths that it
 * lists. */
#include "trace/length_law.h"

#include <kvkeep/kvkeep.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(const length_law *law)
{
    random_state random;
    random_seed(&random, law->n);
    for (int i = 0; i < 16; i++)
        if (length_law_draw(law, &random) > KVK_MAX_TOKENS)
            abort();
    for (uint32_t i = 1; i < law->n; i++)
        if (law->cumulative[i] < law->cumulative[i - 1])
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    length_law law = {NULL, NULL, 0};
    trace_error error = {""};
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    int rc = length_law_read(&law, text, (trace_place){"input", 0, NULL}, &error);
    if (rc == 0 && law.n > 0)
        draw(&law);
    if (rc < 0 && (error.text[0] == '\0' || strchr(error.text, '\n')))
        abort();
    length_law_close(&law);
    free(text);
    return 0;
}
