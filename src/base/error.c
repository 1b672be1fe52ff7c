/* error.c: the texts of the public error codes, from the one table in kvkeep.h. */
#include <kvkeep/base.h>

const char *kvk_strerror(int error)
{
    if (error >= 0)
        return "ok";
    switch (error) {
#define CASE(name, value, text)                                                                                        \
    case name:                                                                                                         \
        return text;
        KVK_ERRORS(CASE)
#undef CASE
    default:
        return "unknown error";
    }
}

const char *kvk_error_name(int error)
{
    switch (error) {
#define CASE(name, value, text)                                                                                        \
    case name:                                                                                                         \
        return #name;
        KVK_ERRORS(CASE)
#undef CASE
    default:
        return NULL;
    }
}
