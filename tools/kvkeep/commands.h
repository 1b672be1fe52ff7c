/* kvkeep/commands.h: the subcommands of `kvkeep`. Each gets its own name as argv[0] and returns the exit status. */
#ifndef KVKEEP_TOOLS_COMMANDS_H
#define KVKEEP_TOOLS_COMMANDS_H

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,   /* the job failed */
    EXIT_BAD_INPUT = 2 /* usage or input is wrong; one line on stderr says what */
};

int cmd_replay(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_info(int argc, char **argv);

#endif
