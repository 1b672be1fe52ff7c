/* kvkeep eval: what eviction costs a real model. */
#include "kvkeep/arguments.h"
#include "kvkeep/commands.h"
#include "kvkeep/eval/eval.h"

#include <stdio.h>
#include <string.h>

static const eval_task *const tasks[] = {&eval_task_ppl,      &eval_task_compare, &eval_task_record,
                                         &eval_task_passkey,  &eval_task_niah,    &eval_task_multi_turn,
                                         &eval_task_calibrate};

enum { N_TASKS = sizeof tasks / sizeof tasks[0] };

static void show_help(void)
{
    puts("Usage: kvkeep eval TASK [OPTION...] [TEXT]\n"
         "Measures what eviction costs a real model.\n");
    for (int i = 0; i < N_TASKS; i++)
        printf("  %-11s %s\n", tasks[i]->name, tasks[i]->text);
    puts("\n`kvkeep eval TASK --help` tells more.");
}

static const eval_task *find(const char *name)
{
    for (int i = 0; i < N_TASKS; i++)
        if (strcmp(tasks[i]->name, name) == 0)
            return tasks[i];
    return NULL;
}

/* The files that are written are opened before the work, so that a bad path is known at once. */
static int open_all(eval_job *j)
{
    int rc = j->o.plot ? outfile_open(&j->drawing, j->o.plot, j->error) : 0;
    if (rc == 0)
        rc = eval_results_open(&j->results, j->o.resume, j->error);
    if (rc == 0)
        rc = loaded_model_open(&j->loaded, j->o.model, j->error);
    return rc < 0 ? rc : profile_open(j->o.profile, &j->loaded.model->shape, &j->profile, j->error);
}

/* Files get their names last, when nothing else can fail. */
static int finish(eval_job *j)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return trace_failed(j->error, (trace_place){"stdout", 0, NULL}, "cannot write");
    return j->drawing.stream ? outfile_commit(&j->drawing, j->error) : 0;
}

static int run(eval_job *j)
{
    int rc = open_all(j);
    if (rc == 0)
        rc = j->task->run(j);
    progress_end(&j->progress);
    if (rc == 0)
        rc = finish(j);
    outfile_discard(&j->drawing);
    eval_results_close(&j->results);
    loaded_model_close(&j->loaded);
    return rc;
}

static int no_task(const char *name, trace_error *error)
{
    const trace_place place = {"kvkeep eval", 0, NULL};
    return name ? trace_bad_input(error, place, "no task '%.64s'; see kvkeep eval --help", name)
                : trace_bad_input(error, place, "no task given; see kvkeep eval --help");
}

int cmd_eval(int argc, char **argv)
{
    trace_error error;
    const char *name = argc >= 2 ? argv[1] : NULL;
    if (name && strcmp(name, "--help") == 0) {
        show_help();
        return arguments_finish_stdout();
    }
    eval_job j = {.task = name ? find(name) : NULL, .error = &error};
    int rc = j.task ? eval_options_parse(&j.o, j.task, argc - 1, argv + 1, &error) : no_task(name, &error);
    if (rc == 1)
        return arguments_finish_stdout();
    if (rc == 0)
        rc = run(&j);
    return rc < 0 ? arguments_report(&error, rc) : EXIT_OK;
}
