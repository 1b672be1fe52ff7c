#include "device/on_device.h"
#include "device/tests.h"

/* Parts as the batch suggests, and parts as short as can be. */
START_TEST(a_shape_of_the_grid_agrees)
{
    uint32_t n;
    device_options options = {(uint32_t)_i % 2, 0};
    const grid_shape *shape = &grid_shapes(&n)[_i / 2];
    if (shape_is_for_device(shape))
        grid_check(shape, device_precision(shape), attention_on_device, &options);
}
END_TEST

void add_attention_tests(TCase *tests)
{
    uint32_t n;
    grid_shapes(&n);
    tcase_add_loop_test(tests, a_shape_of_the_grid_agrees, 0, (int)n * 2);
}
