// Loops over independent pieces of work on a given number of threads.
//
// The body is called once for each index in [0, count), indices handed out in ascending order, from up to `threads`
// threads (the caller's is one of them; 1 means no thread is started; fewer if the system has no more to give). Results
// must be stored by index: nothing may depend on which thread ran what. If bodies throw, the exception of the lowest
// index that threw is rethrown after all threads have stopped; indices above it may not have been visited, indices
// below it have been.
#pragma once

#include <cstdint>
#include <functional>

namespace nibble {

void parallel_for(uint64_t count, int threads, const std::function<void(uint64_t index)>& body);

// Cores that this process may use, at least 1 (base/thread_choice.h).
int default_threads();

}  // namespace nibble
