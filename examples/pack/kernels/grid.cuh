// SPDX-License-Identifier: Apache-2.0
// The elements of a thread in a loop over the grid.
#pragma once

static __device__ uint64_t first()
{
    return blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
}

static __device__ uint64_t step()
{
    return (uint64_t)gridDim.x * blockDim.x;
}
