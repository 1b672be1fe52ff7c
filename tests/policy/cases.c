#include "cases.h"

#include <stdio.h>

const policy_case policy_cases[] = {
    {.policy = "full", .budget_pages = CASE_BUDGET},
    {.policy = "lru", .budget_pages = CASE_BUDGET},
    {.policy = "lru:sinks=", .knob_pages = 2, .budget_pages = CASE_BUDGET},
    {.policy = "window:tokens=", .knob_pages = 9},
    {.policy = "window", .budget_pages = CASE_BUDGET},
    {.policy = "streaming:sinks=4:recent=", .knob_pages = 9},
    {.policy = "streaming:sinks=5", .budget_pages = CASE_BUDGET},
    {.policy = "h2o:sinks=4:recent=7:heavy=", .knob_pages = 12},
    {.policy = "h2o:recent=", .knob_pages = 5, .budget_pages = CASE_BUDGET},
    {.policy = "h2o:sinks=0", .budget_pages = CASE_BUDGET},
    {.policy = "h2o:exit=1:recent=", .knob_pages = 5, .budget_pages = CASE_BUDGET},
    {.policy = "h2o:exit=1:threshold=1.5:sinks=0:recent=", .knob_pages = 4, .budget_pages = CASE_BUDGET},
    {.policy = "scissorhands:history=40", .budget_pages = CASE_BUDGET},
    {.policy = "scissorhands:sinks=3:recent=", .knob_pages = 2, .budget_pages = CASE_BUDGET},
    {.policy = "snapkv", .budget_pages = CASE_BUDGET},
    {.policy = "snapkv:kernel=3:sinks=4:window=", .knob_pages = 3, .budget_pages = CASE_BUDGET},
    {.policy = "snapkv:kernel=33:window=", .knob_pages = 2, .budget_pages = CASE_BUDGET},
    {.policy = "tova", .budget_pages = CASE_BUDGET},
    {.policy = "random:seed=7", .budget_pages = CASE_BUDGET},
    {.policy = "random:sinks=0:recent=", .knob_pages = 1, .budget_pages = CASE_BUDGET},
    {.policy = "keep", .budget_pages = CASE_BUDGET},
    {.policy = "keep:reserve=0:half_life=30", .budget_pages = CASE_BUDGET},
    {.policy = "keep:half_life=0:reserve=0:recent_share=0.3", .budget_pages = CASE_BUDGET},
    {.policy = "keep:importance=2:damping=0:reserve=0.5", .budget_pages = CASE_BUDGET, .near = 2},
    {.policy = "keep", .budget_pages = CASE_BUDGET, .near = 2},
    {.policy = "keep:layers=0:reserve=0.125", .budget_pages = CASE_BUDGET, .near = 2},
    {.policy = "keep:spread=0.25:damping=0:reserve=0.5:recent_share=0.25", .budget_pages = CASE_BUDGET, .near = 2},
    {.policy = "keep:spread=1:importance=2", .budget_pages = CASE_BUDGET, .near = 0},
    {.policy = "keep:least=1.2:damping=0.5:reserve=0.5:recent_share=0.25", .budget_pages = CASE_BUDGET, .near = 2},
    {.policy = "keep:least=1.2:importance=2", .budget_pages = CASE_BUDGET, .near = 0},
    {.policy = "keep:damping=0:half_life=0:recent_share=0.1:reserve=1", .budget_pages = CASE_BUDGET, .near = 1},
};

const uint32_t n_policy_cases = sizeof policy_cases / sizeof *policy_cases;

void case_text(const policy_case *c, uint32_t page_tokens, char text[CASE_TEXT])
{
    if (c->knob_pages > 0)
        snprintf(text, CASE_TEXT, "%s%u", c->policy, c->knob_pages * page_tokens);
    else
        snprintf(text, CASE_TEXT, "%s", c->policy);
}

twin_setup case_setup(const policy_case *c, uint32_t page_tokens, char text[CASE_TEXT])
{
    case_text(c, page_tokens, text);
    return (twin_setup){.policy = text, .budget = c->budget_pages * page_tokens};
}
