/* Choices of policies as text: what is read, what is refused and how, what is written. */
#include "base/decimal.h"
#include "policy/choose.h"
#include "run_tests.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static kvk_policy_choice parse(const char *text)
{
    kvk_policy_choice choice;
    char why[200] = "";
    int rc = kvk_policy_parse(text, NULL, &choice, why, sizeof why);
    ck_assert_msg(rc == 0, "%s: %s", text, why);
    ck_assert_str_eq(why, "");
    return choice;
}

static void refused(const char *text, const char *line)
{
    kvk_policy_choice choice, before;
    char why[200];
    memset(&choice, 0x5a, sizeof choice);
    before = choice;
    ck_assert_int_eq(kvk_policy_parse(text, NULL, &choice, why, sizeof why), KVK_EINVAL);
    ck_assert_str_eq(why, line);
    ck_assert_mem_eq(&choice, &before, sizeof choice);
}

static void written(const char *text, const char *canonical)
{
    kvk_policy_choice choice = parse(text);
    char out[KVK_MAX_POLICY_TEXT];
    int length = kvk_policy_print(&choice, out, sizeof out);
    ck_assert_str_eq(out, canonical);
    ck_assert_int_eq(length, (int)strlen(canonical));
}

static void same_choice(const kvk_policy_choice *a, const kvk_policy_choice *b)
{
    ck_assert_ptr_eq(a->policy, b->policy);
    for (uint32_t i = 0; i < a->policy->n_knobs; i++)
        ck_assert_msg(a->knobs[i] == b->knobs[i], "%s %s: %.17g %.17g", a->policy->name, a->policy->knobs[i].name,
                      a->knobs[i], b->knobs[i]);
}

static void reads_back(const kvk_policy_choice *choice)
{
    char text[KVK_MAX_POLICY_TEXT];
    ck_assert_int_ge(kvk_policy_print(choice, text, sizeof text), 0);
    kvk_policy_choice again = parse(text);
    same_choice(choice, &again);
}

START_TEST(the_policies_stand_in_their_order)
{
    static const char *const names[] = {"full",         "lru",    "window", "streaming", "h2o",
                                        "scissorhands", "snapkv", "tova",   "random",    "keep"};
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert_str_eq(kvk_policy_at(i)->name, names[i]);
        ck_assert(policy_is_own(kvk_policy_at(i)));
    }
    ck_assert_ptr_null(kvk_policy_at(10));
    ck_assert_ptr_null(kvk_policy_at(UINT32_MAX));
    kvk_policy copy = *kvk_policy_at(4);
    ck_assert(!policy_is_own(&copy));
}
END_TEST

START_TEST(every_policy_and_preset_is_valid_and_reads_back)
{
    const kvk_policy *policy;
    const kvk_preset *preset;
    for (uint32_t i = 0; (policy = kvk_policy_at(i)); i++) {
        kvk_policy_choice choice;
        kvk_policy_defaults(policy, &choice);
        ck_assert_int_eq(kvk_policy_check(&choice), 0);
        written(policy->name, policy->name);
        reads_back(&choice);
    }
    for (uint32_t i = 0; (preset = kvk_preset_at(i)); i++) {
        kvk_policy_choice named = parse(preset->name), meant = parse(preset->choice);
        same_choice(&named, &meant);
        reads_back(&named);
    }
    ck_assert_ptr_null(kvk_preset_at(UINT32_MAX));
}
END_TEST

START_TEST(presets_are_what_their_names_say)
{
    written("h2o-4-512-512", "h2o");
    written("streaming-4-1020", "streaming");
    written("window-1024", "window");
    written("h2o-lowest", "h2o:exit=1");
    written("keep-ema", "keep:reserve=0");
    written("keep-sum", "keep:half_life=0:reserve=0");
    written("keep-peak", "keep:importance=2");
    written("keep-near", "keep:importance=1");
    written("keep-8", "keep:reserve=0.125");
}
END_TEST

START_TEST(knobs_follow_a_policy_or_a_preset)
{
    kvk_policy_choice choice = parse("h2o:sinks=8:recent=64:threshold=0.25");
    static const double expected[] = {8, 512, 64, 0, 0.25};
    for (uint32_t i = 0; i < 5; i++)
        ck_assert(choice.knobs[i] == expected[i]);
    written("h2o-lowest:recent=64", "h2o:recent=64:exit=1");
    written("h2o-lowest:exit=0", "h2o");
    written("h2o:recent=64:sinks=0", "h2o:sinks=0:recent=64"); /* in the order of the knobs */
    written("h2o:recent=512", "h2o");
    written("h2o:threshold=1e-3", "h2o:threshold=0.001");
    written("h2o:threshold=-0", "h2o");
    written("h2o:sinks=1E6", "h2o:sinks=1000000");
}
END_TEST

static int try_knob(const kvk_policy *policy, const kvk_knob *knob, double value)
{
    char text[200];
    kvk_policy_choice choice;
    snprintf(text, sizeof text, "%s:%s=%.17g", policy->name, knob->name, value);
    return kvk_policy_parse(text, NULL, &choice, NULL, 0);
}

static int check_knob(const kvk_policy *policy, uint32_t knob, double value)
{
    kvk_policy_choice choice;
    kvk_policy_defaults(policy, &choice);
    choice.knobs[knob] = value;
    return kvk_policy_check(&choice);
}

START_TEST(every_knob_keeps_its_bounds)
{
    const kvk_policy *policy;
    for (uint32_t i = 0; (policy = kvk_policy_at(i)); i++)
        for (uint32_t k = 0; k < policy->n_knobs; k++) {
            const kvk_knob *knob = &policy->knobs[k];
            const double in[] = {knob->min, knob->max, knob->standard};
            const double out[] = {knob->min - 1, knob->max + 1, nextafter(knob->max, HUGE_VAL), knob->whole ? 1.5 : -1};
            for (int j = 0; j < 3; j++) {
                ck_assert_int_eq(try_knob(policy, knob, in[j]), 0);
                ck_assert_int_eq(check_knob(policy, k, in[j]), 0);
            }
            for (int j = 0; j < 4; j++) {
                ck_assert_int_eq(try_knob(policy, knob, out[j]), KVK_EINVAL);
                ck_assert_int_eq(check_knob(policy, k, out[j]), KVK_EINVAL);
            }
            ck_assert_int_eq(check_knob(policy, k, (double)NAN), KVK_EINVAL);
            ck_assert_int_eq(check_knob(policy, k, HUGE_VAL), KVK_EINVAL);
        }
}
END_TEST

START_TEST(what_is_wrong_is_named_in_one_line)
{
    refused(NULL, "no policy is given");
    refused("", "'' is neither a policy nor a preset");
    refused("h3o", "'h3o' is neither a policy nor a preset");
    refused("H2O", "'H2O' is neither a policy nor a preset");
    refused("h2", "'h2' is neither a policy nor a preset");
    refused(" h2o", "' h2o' is neither a policy nor a preset");
    refused("h2o,sinks=4", "'h2o,sinks=4' is neither a policy nor a preset");
    refused("h2o\n:sinks=4", "'h2o?' is neither a policy nor a preset");
    refused("h2o\x1b[31m", "'h2o?[31m' is neither a policy nor a preset");
    refused("h2o:", "h2o: '' is not key=value");
    refused("h2o::sinks=4", "h2o: '' is not key=value");
    refused("h2o:sinks", "h2o: 'sinks' is not key=value");
    refused("h2o:=4", "h2o has no knob ''");
    refused("h2o:sink=4", "h2o has no knob 'sink'");
    refused("full:sinks=4", "full has no knob 'sinks'");
    refused("h2o:sinks=4:sinks=4", "h2o: sinks is given twice");
    refused("h2o:sinks=-1", "h2o: sinks: '-1' is not a whole number of 0 to 1000000000");
    refused("h2o-lowest:exit=2", "h2o: exit: '2' is not a whole number of 0 to 1");
    refused("keep:reserve=1.01", "keep: reserve: '1.01' is not a number of 0 to 1");
    refused("window:tokens=0", "window: tokens: '0' is not a whole number of 1 to 1000000000");
    refused("h2o:sinks=4=5", "h2o: sinks: '4=5' is not a whole number of 0 to 1000000000");
}
END_TEST

START_TEST(only_plain_decimal_numbers_are_numbers)
{
    static const char *const bad[] = {"",      "+1",    " 1",   "1 ",      ".5",    "5.",       "1e",
                                      "1e+",   "0x1p3", "0x10", "inf",     "-",     "nan",      "1,5",
                                      "1.5.2", "--1",   "e5",   "1e99999", "1_000", "\xd9\xa1", "1e5.5"};
    static const char *const good[] = {"1", "0.5", "00012", "1e2", "1E+2", "1.25e-2", "123456789.125"};
    static const double values[] = {1, 0.5, 12, 100, 100, 0.0125, 123456789.125};
    double value;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!decimal_read(bad[i], strlen(bad[i]), &value), "'%s'", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(decimal_read(good[i], strlen(good[i]), &value), "'%s'", good[i]);
        ck_assert(value == values[i]);
    }
}
END_TEST

START_TEST(numbers_are_written_short_and_read_back_exactly)
{
    static const struct {
        double value;
        const char *text;
    } known[] = {{0.1, "0.1"},    {1.0 / 3, "0.3333333333333333"}, {1e6, "1000000"}, {-2.5, "-2.5"},
                 {1e22, "1e+22"}, {0x1p-1074, "5e-324"},           {5e-5, "5e-05"},  {0.1 + 0.2, "0.30000000000000004"},
                 {0, "0"}};
    char text[DECIMAL_BYTES];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        ck_assert_uint_eq(decimal_write(known[i].value, text), strlen(known[i].text));
        ck_assert_str_eq(text, known[i].text);
    }
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        double value, again;
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        size_t length = decimal_write(value, text);
        ck_assert_uint_lt(length, sizeof text);
        ck_assert(decimal_read(text, length, &again));
        ck_assert_mem_eq(&value, &again, sizeof value);
    }
}
END_TEST

/* Where no other locale is installed only the locale of C is tested. */
START_TEST(the_locale_changes_nothing)
{
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8", "C"};
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue;
        written("h2o:threshold=0.25", "h2o:threshold=0.25");
        refused("h2o:threshold=0,25", "h2o: threshold: '0,25' is not a number of 0 to 1000000000");
    }
}
END_TEST

START_TEST(long_texts_are_refused_or_cut_in_messages)
{
    char text[KVK_MAX_POLICY_TEXT + 1], why[200], little[8] = "";
    kvk_policy_choice choice;
    memset(text, 'x', sizeof text);
    ck_assert_int_eq(kvk_policy_parse(text, NULL, &choice, why, sizeof why), KVK_EINVAL); /* without an end */
    ck_assert_str_eq(why, "a policy of more than 511 bytes");
    text[KVK_MAX_POLICY_TEXT - 1] = 0;
    ck_assert_int_eq(kvk_policy_parse(text, NULL, &choice, why, sizeof why), KVK_EINVAL);
    ck_assert_str_eq(why, "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' is neither a policy nor a preset");
    ck_assert_int_eq(kvk_policy_parse("nothing", NULL, &choice, little, sizeof little), KVK_EINVAL);
    ck_assert_str_eq(little, "'nothin");
    ck_assert_int_eq(kvk_policy_parse("nothing", NULL, &choice, NULL, 0), KVK_EINVAL);
    ck_assert_int_eq(kvk_policy_parse("nothing", NULL, &choice, NULL, 9), KVK_EINVAL);
    ck_assert_int_eq(kvk_policy_parse("h2o", NULL, NULL, why, sizeof why), KVK_EINVAL);
}
END_TEST

START_TEST(a_choice_is_written_whole_or_not)
{
    kvk_policy_choice choice = parse("h2o:sinks=12");
    char text[16];
    ck_assert_int_eq(kvk_policy_print(&choice, text, 13), 12);
    ck_assert_str_eq(text, "h2o:sinks=12");
    ck_assert_int_eq(kvk_policy_print(&choice, text, 12), KVK_ESPACE);
    ck_assert_int_eq(kvk_policy_print(&choice, NULL, 0), KVK_ESPACE);
    ck_assert_int_eq(kvk_policy_print(&choice, NULL, 16), KVK_EINVAL);
    ck_assert_int_eq(kvk_policy_print(NULL, text, sizeof text), KVK_EINVAL);
    choice.knobs[0] = -1;
    ck_assert_int_eq(kvk_policy_print(&choice, text, sizeof text), KVK_EINVAL);
}
END_TEST

/* The longest number there is in each knob: 24 bytes, "-1.2345678901234567e-308". */
START_TEST(every_choice_of_the_library_has_room)
{
    const kvk_policy *policy;
    for (uint32_t i = 0; (policy = kvk_policy_at(i)); i++) {
        size_t bytes = strlen(policy->name) + 1;
        for (uint32_t k = 0; k < policy->n_knobs; k++)
            bytes += strlen(policy->knobs[k].name) + 2 + 24;
        ck_assert_uint_le(bytes, KVK_MAX_POLICY_TEXT);
    }
}
END_TEST

/* ---- A policy of the caller's */

static uint32_t needs(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return 0;
}

static const kvk_knob half = {"half", -1, 1, 0.5, 0, ""};

static uint32_t choose(const kvk_policy_view *view, uint32_t want, uint32_t *victims)
{
    (void)view, (void)want, (void)victims;
    return 0;
}

START_TEST(a_policy_of_the_callers_is_known_too)
{
    kvk_policy mine = {.size = sizeof mine, .n_knobs = 1, .name = "mine", .text = "", .knobs = &half, .needs = needs};
    kvk_policy_choice choice;
    char text[64], why[200] = "";
    ck_assert_int_eq(kvk_policy_parse("mine:half=-0.25", &mine, &choice, why, sizeof why), 0);
    ck_assert_ptr_eq(choice.policy, &mine);
    ck_assert(choice.knobs[0] == -0.25);
    ck_assert_int_eq(kvk_policy_print(&choice, text, sizeof text), 15);
    ck_assert_str_eq(text, "mine:half=-0.25");
    ck_assert_int_eq(kvk_policy_parse("h2o-lowest", &mine, &choice, why, sizeof why), 0);
    ck_assert_str_eq(choice.policy->name, "h2o");
    refused("mine", "'mine' is neither a policy nor a preset");
    mine.name = "h2o"; /* the caller's comes first, presets mean the library's */
    ck_assert_int_eq(kvk_policy_parse("h2o", &mine, &choice, why, sizeof why), 0);
    ck_assert_ptr_eq(choice.policy, &mine);
    ck_assert_int_eq(kvk_policy_parse("h2o-lowest", &mine, &choice, why, sizeof why), 0);
    ck_assert_ptr_eq(choice.policy, kvk_policy_at(4));
}
END_TEST

START_TEST(a_policy_that_lacks_something_is_refused)
{
    const kvk_policy whole = {
        .size = sizeof whole, .n_knobs = 1, .name = "m", .text = "", .knobs = &half, .needs = needs};
    const kvk_knob nameless = {NULL, 0, 1, 0, 0, ""}, wordless = {"a", 0, 1, 0, 0, NULL},
                   outside = {"a", 0, 1, 2, 0, ""}, endless = {"a", 0, HUGE_VAL, 2, 0, ""},
                   spaced = {"a b", 0, 1, 0, 0, ""};
    kvk_policy bad[16];
    for (int i = 0; i < 16; i++)
        bad[i] = whole;
    bad[0].size--;
    bad[1].n_knobs = KVK_MAX_KNOBS + 1;
    bad[2].name = NULL;
    bad[3].name = "";
    bad[4].name = "a:b";
    bad[5].name = "a_name_of_more_than_thirty_two_bytes";
    bad[6].text = NULL;
    bad[7].knobs = NULL;
    bad[8].n_scores = KVK_MAX_SCORES + 1;
    bad[9].n_shared = 2;
    bad[10].needs = NULL;
    bad[11].choose = choose; /* without rank */
    const kvk_knob *knobs[] = {&nameless, &wordless, &outside, &endless};
    for (int i = 0; i < 4; i++)
        bad[12 + i].knobs = knobs[i];
    for (int i = 0; i < 16; i++) {
        kvk_policy_choice choice = {.policy = &bad[i]};
        ck_assert_msg(kvk_policy_check(&choice) == KVK_EINVAL, "%d", i);
        ck_assert_int_eq(kvk_policy_parse("h2o", &bad[i], &choice, NULL, 0), KVK_EINVAL);
    }
    kvk_policy last = whole;
    kvk_policy_choice choice = {.policy = &last};
    ck_assert_int_eq(kvk_policy_check(&choice), 0);
    last.knobs = &spaced;
    ck_assert_int_eq(kvk_policy_check(&choice), KVK_EINVAL);
    ck_assert_int_eq(kvk_policy_check(NULL), KVK_EINVAL);
    choice.policy = NULL;
    ck_assert_int_eq(kvk_policy_check(&choice), KVK_EINVAL);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("text");
    tcase_add_test(c, the_policies_stand_in_their_order);
    tcase_add_test(c, every_policy_and_preset_is_valid_and_reads_back);
    tcase_add_test(c, presets_are_what_their_names_say);
    tcase_add_test(c, knobs_follow_a_policy_or_a_preset);
    tcase_add_test(c, every_knob_keeps_its_bounds);
    tcase_add_test(c, what_is_wrong_is_named_in_one_line);
    tcase_add_test(c, only_plain_decimal_numbers_are_numbers);
    tcase_add_test(c, numbers_are_written_short_and_read_back_exactly);
    tcase_add_test(c, the_locale_changes_nothing);
    tcase_add_test(c, long_texts_are_refused_or_cut_in_messages);
    tcase_add_test(c, a_choice_is_written_whole_or_not);
    tcase_add_test(c, every_choice_of_the_library_has_room);
    tcase_add_test(c, a_policy_of_the_callers_is_known_too);
    tcase_add_test(c, a_policy_that_lacks_something_is_refused);
    return run_tests("policy text", c);
}
