// Threads of this library: libtorch's, its BLAS's, and a pool of our own for loops that are not torch's.
#pragma once

#include "nibble/base/thread_pool.h"

namespace nibble {

// For all three, from now on; not while work runs.
void set_train_threads(int threads);
// Of the number last set, at first default_threads().
ThreadPool& train_pool();

}  // namespace nibble
