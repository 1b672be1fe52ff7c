/* kvkeep generate: a model on a cache, with a budget, talking. */
#include "engine/chat.h"
#include "engine/utf8_stream.h"
#include "kvkeep/commands.h"
#include "kvkeep/generate_options.h"
#include "kvkeep/generate_pages.h"
#include "kvkeep/loaded_model.h"
#include "kvkeep/profile.h"
#include "kvkeep/progress.h"
#include "kvkeep/report.h"
#include "kvkeep/whole_file.h"

#include <stdlib.h>
#include <string.h>

/* One run of the command. */
typedef struct generation {
    generate_options o;
    trace_error *error;
    loaded_model loaded;
    profile profile;
    token_list prompt;
    runner *runner;
    kvk_seq seq;
    sampler *sampler;
    kvk_eviction eviction;
    utf8_stream characters;
    char *text; /* [n_text] what was said, with --json */
    size_t n_text, cap_text;
    uint32_t n_said;
    bool ended; /* by the model */
    double prompt_s, said_s;
} generation;

static int out_of_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep generate", 0, NULL}, "out of memory");
}

/* ---- The prompt ------------------------------------------------------------------------------------------------- */

static int render(generation *g, const char *bytes, size_t n)
{
    chat_format format;
    int has_system = g->o.system != NULL;
    chat_message messages[2] = {{CHAT_SYSTEM, g->o.system, has_system ? strlen(g->o.system) : 0},
                                {CHAT_USER, bytes, n}};
    chat_conversation c = {has_system ? messages : messages + 1, has_system ? 2 : 1, 1};
    int rc = chat_format_open(g->loaded.file, &format, g->error);
    return rc < 0 ? rc : chat_render(g->loaded.tokenizer, &format, &c, &g->prompt, g->error);
}

static int encode(generation *g, const char *bytes, size_t n)
{
    if (!g->o.raw)
        return render(g, bytes, n);
    return tokenizer_encode(g->loaded.tokenizer, bytes, n, TOKENIZER_BEGIN, &g->prompt, g->error);
}

static int read_prompt(generation *g)
{
    char *bytes = NULL;
    size_t n = strlen(g->o.prompt);
    bool from_input = strcmp(g->o.prompt, "-") == 0;
    int rc = from_input ? whole_file_read("-", &bytes, &n, g->error) : 0;
    if (rc == 0)
        rc = encode(g, from_input ? bytes : g->o.prompt, n);
    free(bytes);
    uint32_t context = g->loaded.model->shape.context;
    const trace_place place = {"kvkeep generate", 0, "PROMPT"};
    if (rc == 0 && g->prompt.n == 0)
        rc = trace_bad_input(g->error, place, "is empty");
    if (rc == 0 && g->prompt.n >= context)
        rc = trace_bad_input(g->error, place, "%zu tokens leave no room in the model's context of %u", g->prompt.n,
                             context);
    return rc;
}

/* ---- The sequence ----------------------------------------------------------------------------------------------- */

/* A budget without a policy is keep's, a policy without a budget evicts only if it has one of its own. */
static int choose_eviction(generation *g)
{
    const generate_options *o = &g->o;
    double most = (double)g->prompt.n + o->max_tokens;
    int rc = runner_policy(o->budgets.n ? "keep" : "full", 0, &g->eviction, g->error);
    if (o->policies.n)
        g->eviction.choice = o->policies.choices[0];
    g->eviction.choice = profile_choice(&g->profile, &g->eviction.choice);
    g->eviction.budget = o->budgets.n ? budget_tokens(o->budgets.budgets[0], most) : 0;
    g->eviction.n_prompt = (uint32_t)g->prompt.n;
    return rc;
}

static int open_sequence(generation *g)
{
    runner_config config = RUNNER_CONFIG(g->loaded.model);
    uint64_t most = g->prompt.n + g->o.max_tokens, context = g->loaded.model->shape.context;
    config.page_tokens = g->o.page_tokens;
    config.n_groups = RUNNER_PER_LAYER;
    config.kv_tokens = (most < context ? most : context) + g->o.page_tokens;
    int rc = profile_open(g->o.profile, &g->loaded.model->shape, &g->profile, g->error);
    config.near = g->profile.near;
    if (rc == 0)
        rc = choose_eviction(g);
    if (rc == 0)
        rc = runner_open(&config, &g->runner, g->error);
    if (rc == 0)
        rc = runner_sequence(g->runner, &g->eviction, &g->seq, g->error);
    return rc < 0 ? rc : sampler_open(&g->o.sample, g->loaded.model->shape.n_vocabulary, &g->sampler, g->error);
}

/* ---- Talking ---------------------------------------------------------------------------------------------------- */

static int keep_text(generation *g, const char *bytes, size_t n)
{
    if (g->n_text + n > g->cap_text) {
        size_t cap = 2 * (g->n_text + n);
        char *more = realloc(g->text, cap);
        if (!more)
            return out_of_memory(g->error);
        g->text = more;
        g->cap_text = cap;
    }
    memcpy(g->text + g->n_text, bytes, n);
    g->n_text += n;
    return 0;
}

static int give(generation *g, const char *characters, size_t n)
{
    if (g->o.json)
        return keep_text(g, characters, n);
    if (fwrite(characters, 1, n, stdout) < n || fflush(stdout) != 0)
        return trace_failed(g->error, (trace_place){"stdout", 0, NULL}, "cannot write");
    return 0;
}

static int say(generation *g, uint32_t token)
{
    const char *bytes = "";
    size_t n = 0;
    (void)tokenizer_bytes(g->loaded.tokenizer, (int32_t)token, &bytes, &n);
    char *characters = malloc(UTF8_STREAM_ROOM(n));
    if (!characters)
        return out_of_memory(g->error);
    int rc = give(g, characters, utf8_stream_put(&g->characters, bytes, n, characters));
    free(characters);
    return rc;
}

static int say_end(generation *g)
{
    char characters[UTF8_STREAM_ROOM(0)];
    int rc = give(g, characters, utf8_stream_end(&g->characters, characters));
    return rc < 0 || g->o.json ? rc : give(g, "\n", 1);
}

static int show_pages(generation *g)
{
    if (!g->o.show_pages)
        return 0;
    return generate_show_pages(g->runner, g->seq, g->o.page_tokens, stderr, g->error);
}

/* Chunk by chunk; *logits are those after the last token. */
static int read_all(generation *g, const float **logits)
{
    uint32_t n = (uint32_t)g->prompt.n;
    int rc = 0;
    for (uint32_t at = 0; at < n && rc == 0; at += g->o.chunk) {
        uint32_t left = n - at, step = left < g->o.chunk ? left : g->o.chunk;
        runner_entry e = {.sequence = g->seq, .tokens = (const uint32_t *)g->prompt.ids + at, .n = step};
        e.want = left == step ? RUNNER_LAST : RUNNER_NOTHING;
        rc = runner_step(g->runner, &e, 1, g->error);
        *logits = e.logits;
    }
    return rc;
}

static int talk(generation *g, const float *logits)
{
    uint32_t context = g->loaded.model->shape.context;
    int rc = 0;
    while (rc == 0 && g->n_said < g->o.max_tokens && g->prompt.n + g->n_said < context) {
        uint32_t token = sampler_next(g->sampler, logits);
        g->ended = tokenizer_is_end(g->loaded.tokenizer, (int32_t)token);
        if (g->ended)
            return 0;
        rc = say(g, token);
        runner_entry e = {.sequence = g->seq, .tokens = &token, .n = 1, .want = RUNNER_LAST};
        if (rc == 0)
            rc = runner_step(g->runner, &e, 1, g->error);
        g->n_said++;
        logits = e.logits;
    }
    return rc;
}

static int converse(generation *g)
{
    const float *logits = NULL;
    double start_s = progress_now_s();
    int rc = read_all(g, &logits);
    g->prompt_s = progress_now_s() - start_s;
    if (rc == 0)
        rc = show_pages(g);
    start_s = progress_now_s();
    if (rc == 0)
        rc = talk(g, logits);
    g->said_s = progress_now_s() - start_s;
    if (rc == 0)
        rc = say_end(g);
    return rc < 0 ? rc : show_pages(g);
}

/* ---- The report ------------------------------------------------------------------------------------------------- */

static json_t *rate(double n, double seconds)
{
    return n > 0 && seconds > 0 ? json_real(n / seconds) : json_null();
}

static int print_report(generation *g)
{
    kvk_eviction_info info = {.size = sizeof info};
    char policy[KVK_MAX_POLICY_TEXT] = "";
    report r;
    int rc = kvk_eviction_info_get(runner_cache(g->runner), g->seq, &info);
    if (rc < 0)
        return trace_failed(g->error, (trace_place){"kvkeep generate", 0, NULL}, "%s", kvk_strerror(rc));
    (void)kvk_policy_print(&g->eviction.choice, policy, sizeof policy);
    report_open(&r);
    report_add(&r, "model", json_string(loaded_model_name(&g->loaded)));
    report_add(&r, "policy", json_string(policy));
    report_count(&r, "budget_tokens", g->eviction.budget);
    report_add(&r, "text", json_stringn(g->text ? g->text : "", g->n_text));
    report_add(&r, "stopped_by", json_string(g->ended ? "end" : "length"));
    report_count(&r, "prompt_tokens", g->prompt.n);
    report_count(&r, "tokens", g->n_said);
    report_count(&r, "pages_kept", info.pages_kept);
    report_count(&r, "pages_evicted", info.pages_evicted);
    report_add(&r, "evicted_mass", json_real(info.evicted_mass));
    report_count(&r, "kv_bytes", info.pages_kept * runner_page_bytes(g->runner));
    report_add(&r, "prompt_tokens_per_s", rate((double)g->prompt.n, g->prompt_s));
    report_add(&r, "tokens_per_s", rate(g->n_said, g->said_s));
    return report_print(&r, true, g->error);
}

static int run(generation *g)
{
    int rc = loaded_model_open(&g->loaded, g->o.model, g->error);
    if (rc == 0)
        rc = read_prompt(g);
    if (rc == 0)
        rc = open_sequence(g);
    if (rc == 0)
        rc = converse(g);
    if (rc == 0 && g->o.json)
        rc = print_report(g);
    sampler_close(g->sampler);
    runner_close(g->runner);
    token_list_free(&g->prompt);
    loaded_model_close(&g->loaded);
    free(g->text);
    return rc;
}

int cmd_generate(int argc, char **argv)
{
    trace_error error;
    generation g = {.error = &error};
    int rc = generate_options_parse(&g.o, argc, argv, &error);
    if (rc == 1)
        return arguments_finish_stdout();
    if (rc == 0)
        rc = run(&g);
    return rc < 0 ? arguments_report(&error, rc) : arguments_finish_stdout();
}
