/* attention.c: the defaults of what attention is called with. */
#include <kvkeep/attention.h>

void kvk_attention_init(kvk_attention *attention)
{
    if (attention)
        *attention = (kvk_attention){.size = sizeof *attention};
}

void kvk_attention_out_init(kvk_attention_out *out)
{
    if (out)
        *out = (kvk_attention_out){.size = sizeof *out, .weight = 1};
}
