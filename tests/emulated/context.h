/* context.h: stacks of their own, and switching between them. */
#ifndef TESTS_EMULATED_CONTEXT_H
#define TESTS_EMULATED_CONTEXT_H

#include <cstddef>

#ifndef __x86_64__
#include <ucontext.h>
#endif

/* A place where a computation stopped. Address sanitizers are told of every switch, so they know which stack is in
 * use. */
struct context {
#ifdef __x86_64__
    void *stack_pointer;
#else
    ucontext_t saved;
#endif
    const void *stack; /* its lowest address */
    size_t stack_bytes;
    void *fake_stack;
};

/* A context that will begin with entry(), which must never return, on this stack. */
void context_make(context *c, void *stack, size_t bytes, void (*entry)());

/* Stops here, in `from`, and goes on in `to`. */
void context_switch(context *from, context *to);

/* What entry() calls first. `from` is the context that was left, which may be one without a stack known so far. */
void context_entered(context *from);

#endif
