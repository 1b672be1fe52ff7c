/* eval/calibrate.h: the search of `kvkeep eval calibrate`, coordinate by coordinate. First the heads whose near
 * peaks tell what will be asked for, over recorded peaks (needle_peaks.h); then what takes runs of the model: the
 * reserve's share, the recent share, how fast attention fades. A step's value must not cost more perplexity than --loss
 * allows; of those the one with the best recall is taken. */
#ifndef KVKEEP_TOOLS_EVAL_CALIBRATE_H
#define KVKEEP_TOOLS_EVAL_CALIBRATE_H

#include "kvkeep/eval/needle.h"
#include "kvkeep/eval/needle_peaks.h"
#include "kvkeep/eval/text.h"

enum { CALIBRATE_KINDS = 3 /* digits, words, conversations */ };

typedef struct calibration {
    eval_job *job;
    eval_text text;
    needle_cell *cells[CALIBRATE_KINDS]; /* NULL: none of the kind */
    uint32_t n_cells[CALIBRATE_KINDS];
    profile best;
    json_t *steps; /* what was tried, in order */
} calibration;

/* Runs a cell's prompts through the model and notes their near peaks into peaks[cell->n], whose arrays are the caller's
 * to free, in any case (calibrate_record.c). */
int calibrate_record(const calibration *c, const needle_cell *cell, needle_peaks *peaks);

/* Finds heads, damping and spread (calibrate_heads.c). */
int calibrate_heads(calibration *c);

/* Finds the knobs (calibrate_knobs.c). */
int calibrate_knobs(calibration *c);

int calibrate_out_of_memory(const calibration *c);

/* The place of a knob of keep. */
uint32_t calibrate_knob(const char *name);

#endif
