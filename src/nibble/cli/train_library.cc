#include "nibble/cli/train_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "nibble/base/error.h"
#include "nibble/train/plugin.h"

namespace nibble {
namespace {

constexpr const char* kLibrary = "libnibble_train.so";
constexpr const char* kVariable = "NIBBLE_TRAIN_LIBRARY";

std::string loader_message() {
  const char* said = ::dlerror();
  return said == nullptr ? "the dynamic loader does not say why" : said;
}

// The function `name` of the library, as a `Function*`.
template <typename Function>
Function* function(void* handle, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(handle, name));
}

Error foreign(const Path& path) {
  return Error("this is not the training library of this nibble")
      .file(path.string())
      .way_out("build both together: cmake --build build/release --target nibble nibble_train_library");
}

void check_abi(const Path& path, void* handle) {
  auto* abi = function<uint32_t()>(handle, "nibble_train_abi");
  if (abi == nullptr) throw foreign(path).value("missing_function", "nibble_train_abi");
  if (abi() != kNibbleTrainAbi)
    throw foreign(path).value("its_version", abi()).value("wanted_version", kNibbleTrainAbi);
}

std::string text_of(const Json& object, const char* key) {
  return json_string(object, key, "the training library's answer").value_or("");
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  const Json* list = json_member(object, key);
  return list == nullptr ? std::vector<std::string>{} : list->get<std::vector<std::string>>();
}

Error error_of(const Json& answer) {
  Error error(text_of(answer, "message"));
  error.file(text_of(answer, "file")).tensor(text_of(answer, "tensor"));
  if (const Json* values = json_member(answer, "values")) {
    for (const Json& pair : *values) error.value(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
  }
  for (const std::string& way : texts_of(answer, "ways_out")) error.way_out(way);
  for (const std::string& doing : texts_of(answer, "contexts")) error.context(doing);
  return error;
}

}  // namespace

std::vector<Path> train_library_places() {
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != '\0') return {Path(named)};
  std::error_code error;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const Path folder = program.parent_path();
  return {folder / kLibrary, folder.parent_path() / "lib" / kLibrary};
}

TrainLibrary::TrainLibrary(Path path, void* handle) : path_(std::move(path)), handle_(handle) {}

TrainLibrary TrainLibrary::open() {
  // Read by libgomp when libtorch loads it. Its threads would spin after each loop for as long as a BLAS product takes,
  // on the cores that the BLAS's threads and ours want: two threads were half as fast as one. Anyone may say otherwise.
  static_cast<void>(::setenv("OMP_WAIT_POLICY", "passive", 0));
  std::string places;
  for (const Path& path : train_library_places()) {
    places += (places.empty() ? "" : ", ") + path.string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      throw Error("the training library cannot be opened")
          .file(path.string())
          .value("loader", loader_message())
          .way_out("install libtorch: tools/setup.sh")
          .way_out(fmt::format("name another library by the variable {}", kVariable));
    }
    check_abi(path, handle);
    return {path, handle};
  }
  throw Error("training is a library of its own, and it is not here")
      .value("looked_for", places)
      .way_out(
          "build it: cmake --build build/release --target nibble_train_library (it needs libtorch: tools/setup.sh)")
      .way_out(fmt::format("name it by the variable {}", kVariable));
}

Json TrainLibrary::run(const Json& request, int threads, const TrainCallbacks& callbacks) const {
  auto* run = function<char*(const char*, const NibbleTrainHost*)>(handle_, "nibble_train_run");
  auto* free_answer = function<void(char*)>(handle_, "nibble_train_free");
  if (run == nullptr || free_answer == nullptr) throw foreign(path_).value("missing_function", "nibble_train_run");
  TrainCallbacks calls = callbacks;
  NibbleTrainHost host{};
  host.threads = threads;
  host.user = &calls;
  host.show = [](void* user, const char* text) { static_cast<TrainCallbacks*>(user)->show(text); };
  host.note = [](void* user, const char* text) { static_cast<TrainCallbacks*>(user)->note(text); };
  char* answer = run(json_text(request).c_str(), &host);
  if (answer == nullptr) throw std::bad_alloc();
  const std::string text = answer;
  free_answer(answer);
  Json parsed = parse_json(text, "the training library's answer");
  if (const Json* error = json_member(parsed, "error")) throw error_of(*error);
  return parsed;
}

}  // namespace nibble
