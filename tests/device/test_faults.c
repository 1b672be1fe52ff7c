/* Faults that others had (attention/faults.h): the kernels have none of them. Every list of a case ends where memory
 * does (vllm flash-attention#42: reads past the block table). */
#include "attention/faults.h"
#include "device/on_device.h"
#include "device/tests.h"

static const kvk_dtype q_dtypes[] = {KVK_F16, KVK_BF16};

/* Parts as the batch suggests, and parts as short as can be: 64 tokens. */
START_TEST(no_fault_of_a_shape_is_here)
{
    device_options options = {(uint32_t)_i % 2, 0};
    grid_shape shape = fault_shape((uint32_t)_i / 4);
    shape.q_dtype = q_dtypes[_i / 2 % 2];
    if (shape_is_for_device(&shape))
        grid_check(&shape, device_precision(&shape), attention_on_device, &options);
}
END_TEST

START_TEST(the_newest_page_has_its_mass)
{
    device_options options = {(uint32_t)_i, 0};
    fault_newest_page(KVK_F16, attention_on_device, &options);
}
END_TEST

START_TEST(without_a_page_there_is_nothing)
{
    device_options options = {(uint32_t)_i, 0};
    fault_no_page(KVK_F16, attention_on_device, &options);
}
END_TEST

void add_fault_tests(TCase *tests)
{
    tcase_add_loop_test(tests, no_fault_of_a_shape_is_here, 0, 4 * (int)fault_count());
    tcase_add_loop_test(tests, the_newest_page_has_its_mass, 0, 2);
    tcase_add_loop_test(tests, without_a_page_there_is_nothing, 0, 2);
}
