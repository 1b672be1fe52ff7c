/* kvkeep/policy_list.h: the options --policy and --budget, each of which may be given several times. */
#ifndef KVKEEP_TOOLS_POLICY_LIST_H
#define KVKEEP_TOOLS_POLICY_LIST_H

#include "kvkeep/arguments.h"

#include <kvkeep/policy.h>
#include <stdbool.h>

enum { POLICY_LIST_MAX = 64, BUDGET_LIST_MAX = 32 };

typedef struct policy_list {
    kvk_policy_choice choices[POLICY_LIST_MAX];
    uint32_t n;
} policy_list;

/* Tokens, or a share of the text's. */
typedef struct token_budget {
    double size;
    bool is_share;
} token_budget;

typedef struct budget_list {
    token_budget budgets[BUDGET_LIST_MAX];
    uint32_t n;
} budget_list;

/* Adds what an option says: a policy or a preset with its knobs, or "all" for every policy; tokens, or a share of the
 * text ("36%"). 0, or EINVAL with the error set. */
error_t policy_list_add(const arguments *a, policy_list *list, const char *text);
error_t budget_list_add(const arguments *a, budget_list *list, const char *text);

/* A budget for a text of so many tokens. A share is cut to whole tokens. */
uint32_t budget_tokens(token_budget b, double text_tokens);

#endif
