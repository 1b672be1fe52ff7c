/* kvkeep: one command, one file per subcommand. */
#include "kvkeep/arguments.h"
#include "kvkeep/commands.h"

#include <kvkeep/kvkeep.h>
#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"replay", "Run a trace, an op log or a generated workload through a cache", cmd_replay},
    {"eval", "Measure what eviction costs a real model", cmd_eval},
    {"generate", "Run a model on a cache and print what it says", cmd_generate},
    {"bench", "Measure the manager's own speed", cmd_bench},
    {"info", "Show the version, the build and what this machine offers", cmd_info},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void show_help(void)
{
    puts("Usage: kvkeep COMMAND [OPTION...] [ARGUMENT...]\n"
         "A paged KV-cache manager for batching LLM servers.\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].help);
    puts("\n`kvkeep COMMAND --help` tells more. `kvkeep --version` prints the version.");
}

static const command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int no_command(const char *name)
{
    trace_error error;
    if (!name)
        trace_bad_input(&error, (trace_place){"kvkeep", 0, NULL}, "no command given; see kvkeep --help");
    else
        trace_bad_input(&error, (trace_place){"kvkeep", 0, NULL}, "no command '%.64s'; see kvkeep --help", name);
    return arguments_report(&error, TRACE_BAD_INPUT);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "--version") == 0)
        printf("kvkeep %s\n", kvk_version());
    else if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        show_help();
    else {
        const command *c = argc >= 2 ? find(argv[1]) : NULL;
        return c ? c->run(argc - 1, argv + 1) : no_command(argc >= 2 ? argv[1] : NULL);
    }
    return arguments_finish_stdout();
}
