#include "nibble/train/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <memory>

#include "nibble/base/parallel.h"

namespace nibble {
namespace {

// torch tells MKL how many threads to use and no other BLAS. OpenBLAS takes the processor's number unless told, by a
// function that not every BLAS has: it is looked for where the BLAS is loaded already.
void set_blas_threads(int threads) {
  for (const char* name : {"libblas.so.3", "libopenblas.so.0"}) {
    void* blas = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (blas == nullptr) continue;
    if (void* set = ::dlsym(blas, "openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(threads);
    ::dlclose(blas);
  }
}

std::unique_ptr<ThreadPool>& pool() {
  static std::unique_ptr<ThreadPool> only;
  return only;
}

}  // namespace

void set_train_threads(int threads) {
  at::set_num_threads(threads);
  set_blas_threads(threads);
  if (!pool() || pool()->threads() != threads) pool() = std::make_unique<ThreadPool>(threads);
}

ThreadPool& train_pool() {
  if (!pool()) pool() = std::make_unique<ThreadPool>(default_threads());
  return *pool();
}

}  // namespace nibble
