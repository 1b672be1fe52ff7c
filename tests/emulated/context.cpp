#include "emulated/context.h"

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifdef HAS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

static void announce(context *from, const context *to)
{
#ifdef HAS_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#else
    (void)from, (void)to;
#endif
}

static void arrive(void *fake_stack, context *from)
{
#ifdef HAS_ASAN
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
    if (from)
        from->stack = stack, from->stack_bytes = bytes;
#else
    (void)fake_stack, (void)from;
#endif
}

void context_entered(context *from)
{
    arrive(nullptr, from);
}

#ifdef __x86_64__

/* The registers that a call keeps go on the stack, the stack pointer to *from. */
extern "C" void emulated_switch_stack(void **from, void *to);
asm(R"(
.text
.type emulated_switch_stack,@function
emulated_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulated_switch_stack,.-emulated_switch_stack
)");

void context_make(context *c, void *stack, size_t bytes, void (*entry)())
{
    uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t(15);
    void **at = reinterpret_cast<void **>(top);
    *--at = nullptr; /* where entry() would return to, so that its stack is aligned as after a call */
    *--at = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; i++)
        *--at = nullptr;
    c->stack_pointer = at;
    c->stack = stack;
    c->stack_bytes = bytes;
    c->fake_stack = nullptr;
}

static void switch_stacks(context *from, context *to)
{
    emulated_switch_stack(&from->stack_pointer, to->stack_pointer);
}

#else

void context_make(context *c, void *stack, size_t bytes, void (*entry)())
{
    getcontext(&c->saved);
    c->saved.uc_stack.ss_sp = stack;
    c->saved.uc_stack.ss_size = bytes;
    c->saved.uc_link = nullptr;
    makecontext(&c->saved, entry, 0);
    c->stack = stack;
    c->stack_bytes = bytes;
    c->fake_stack = nullptr;
}

static void switch_stacks(context *from, context *to)
{
    swapcontext(&from->saved, &to->saved);
}

#endif

void context_switch(context *from, context *to)
{
    announce(from, to);
    switch_stacks(from, to);
    arrive(from->fake_stack, nullptr);
}
