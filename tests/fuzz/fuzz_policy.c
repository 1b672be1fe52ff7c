/* fuzz_policy.c: the input is a written choice of a policy. What is read must be valid, and be read the same again from
 * what is written of it; what is refused leaves one line. */
#include <kvkeep/policy.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t needs(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return 0;
}

/* A caller's, whose only knob takes any number. */
static const kvk_knob any = {"any", -1e308, 1e308, 0, 0, ""};
static const kvk_policy mine = {
    .size = sizeof mine, .n_knobs = 1, .name = "mine", .text = "", .knobs = &any, .needs = needs};

static void write_and_read(const kvk_policy_choice *choice)
{
    char text[KVK_MAX_POLICY_TEXT], why[64];
    kvk_policy_choice again;
    if (kvk_policy_check(choice) < 0 || kvk_policy_print(choice, text, sizeof text) < 0)
        abort();
    if (kvk_policy_parse(text, &mine, &again, why, sizeof why) < 0 || again.policy != choice->policy)
        abort();
    for (uint32_t i = 0; i < again.policy->n_knobs; i++)
        if (again.knobs[i] < choice->knobs[i] || again.knobs[i] > choice->knobs[i])
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kvk_policy_choice choice;
    char why[64] = "";
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (kvk_policy_parse(text, &mine, &choice, why, sizeof why) == 0)
        write_and_read(&choice);
    else if (why[0] == '\0' || strchr(why, '\n'))
        abort();
    free(text);
    return 0;
}
