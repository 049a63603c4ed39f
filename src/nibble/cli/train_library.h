// libnibble_train.so, opened when somebody trains: the program itself does not link libtorch.
//
// NIBBLE_TRAIN_LIBRARY names one; without it the library lies beside the program, or in ../lib from there. A missing or
// foreign library is an Error that says where it was looked for and how to get one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nibble/base/file.h"
#include "nibble/base/json.h"

namespace nibble {

struct TrainCallbacks {
  std::function<void(const std::string& text)> show, note;  // train/plugin.h
};

class TrainLibrary {
 public:
  // It stays loaded until the process ends: libtorch's threads and registries do not survive being unloaded.
  static TrainLibrary open();
  // The answer's "result" and "text" (train/plugin.h). Throws the Error that the library answers with.
  Json run(const Json& request, int threads, const TrainCallbacks& callbacks) const;

 private:
  TrainLibrary(Path path, void* handle);

  Path path_;
  void* handle_ = nullptr;
};

// Where open() looks, in order.
std::vector<Path> train_library_places();

}  // namespace nibble
