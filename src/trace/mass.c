#include "trace/mass.h"

#include <stddef.h>

int mass_next(mass_trace *t, mass_step *out, trace_error *error)
{
    *out = (mass_step){NULL, NULL, NULL};
    if (t->step == t->shape.steps)
        return 0;
    t->step++;
    int rc = t->ops->next(t, out, error);
    return rc < 0 ? rc : 1;
}

int mass_rewind(mass_trace *t, trace_error *error)
{
    t->step = 0;
    return t->ops->rewind(t, error);
}

void mass_close(mass_trace *t)
{
    if (t)
        t->ops->close(t);
}
