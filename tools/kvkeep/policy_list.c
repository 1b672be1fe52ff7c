#include "kvkeep/policy_list.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static error_t refuse(const arguments *a, const char *option, const char *text, const char *why)
{
    trace_bad_input(a->error, (trace_place){a->command, 0, option}, "'%.64s' %s", text, why);
    return EINVAL;
}

static error_t add_one(const arguments *a, policy_list *list, const char *text)
{
    char why[256] = "";
    if (list->n == POLICY_LIST_MAX)
        return refuse(a, "--policy", text, "is one policy too many");
    if (kvk_policy_parse(text, NULL, &list->choices[list->n], why, sizeof why) == 0) {
        list->n++;
        return 0;
    }
    trace_bad_input(a->error, (trace_place){a->command, 0, "--policy"}, "%s", why);
    return EINVAL;
}

error_t policy_list_add(const arguments *a, policy_list *list, const char *text)
{
    error_t rc = 0;
    if (strcmp(text, "all") != 0)
        return add_one(a, list, text);
    for (uint32_t i = 0; kvk_policy_at(i) && rc == 0; i++)
        rc = add_one(a, list, kvk_policy_at(i)->name);
    return rc;
}

error_t budget_list_add(const arguments *a, budget_list *list, const char *text)
{
    char *end;
    double size = strtod(text, &end);
    bool is_number = end != text && size > 0, is_share = is_number && strcmp(end, "%") == 0;
    if (!(is_share ? size <= 100 : is_number && *end == '\0' && size <= UINT32_MAX && size == floor(size)))
        return refuse(a, "--budget", text, "is neither a number of tokens nor a share above 0 up to 100 percent");
    if (list->n == BUDGET_LIST_MAX)
        return refuse(a, "--budget", text, "is one budget too many");
    list->budgets[list->n++] = (token_budget){is_share ? size / 100 : size, is_share};
    return 0;
}

/* A share such as 0.29 is a double a little below it. */
uint32_t budget_tokens(token_budget b, double text_tokens)
{
    const double rounding = 1e-6;
    return (uint32_t)(b.is_share ? b.size * text_tokens + rounding : b.size);
}
