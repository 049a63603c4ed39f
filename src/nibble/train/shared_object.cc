// The three functions that libnibble_train.so is opened for.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "nibble/train/answer.h"
#include "nibble/train/plugin.h"

// Weak in the archives, seen from outside here.
#define NIBBLE_EXPORT [[gnu::visibility("default")]]

extern "C" {

NIBBLE_EXPORT uint32_t nibble_train_abi() { return kNibbleTrainAbi; }

NIBBLE_EXPORT char* nibble_train_run(const char* request, const NibbleTrainHost* host) {
  try {
    nibble::TrainHost ours;
    ours.threads = host->threads;
    ours.show = [host](const std::string& text) { host->show(host->user, text.c_str()); };
    ours.note = [host](const std::string& text) { host->note(host->user, text.c_str()); };
    const std::string answer = nibble::answer_request(request, ours);
    auto* copy = static_cast<char*>(std::malloc(answer.size() + 1));
    if (copy != nullptr) std::memcpy(copy, answer.c_str(), answer.size() + 1);
    return copy;
  } catch (const std::exception&) {
    return nullptr;  // answer_request() words what it can: what is left is a lack of memory
  }
}

NIBBLE_EXPORT void nibble_train_free(char* answer) { std::free(answer); }
}
