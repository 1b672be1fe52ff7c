/* matrix_base.c: for what every processor of the architecture has. */
#define TILE 3
#define PANELS 1
#include "engine/matrix_kernel.h"

const matrix_kernel *matrix_kernel_base(void)
{
    static const matrix_kernel kernel = {PANELS, multiply};
    return &kernel;
}
