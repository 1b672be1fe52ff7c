/* cases.h: policies with knobs that say something at every page size, for the tests that go through all of them. */
#ifndef CASES_H
#define CASES_H

#include "lab.h"

enum { CASE_TEXT = 128, CASE_BUDGET = 20 };

typedef struct policy_case {
    const char *policy;    /* its text, up to the last number if knob_pages is given */
    uint32_t knob_pages;   /* that number, in pages */
    uint32_t budget_pages; /* 0: the policy's own */
    uint32_t near;         /* heads of near peaks, in each of two layers */
} policy_case;

extern const policy_case policy_cases[];
extern const uint32_t n_policy_cases;

/* The policy's text at a page size. */
void case_text(const policy_case *c, uint32_t page_tokens, char text[CASE_TEXT]);

/* The case as a setup; `text` must live as long. */
twin_setup case_setup(const policy_case *c, uint32_t page_tokens, char text[CASE_TEXT]);

#endif
