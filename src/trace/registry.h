/* trace/registry.h: all formats that files may have. */
#ifndef KVKEEP_TRACE_REGISTRY_H
#define KVKEEP_TRACE_REGISTRY_H

#include "trace/format.h"

/* NULL where there is no such name. */
const trace_format *registry_named(const char *name);

/* NULL where no format is known by this beginning of a file. */
const trace_format *registry_detect_head(const char *head);

/* NULL where no format begins like this line. */
const trace_format *registry_detect(const char *line, size_t length);

#endif
