// What `nibble` and libnibble_train.so know of each other: three C functions. The program does not link libtorch; it
// opens the library with dlopen when somebody trains, asks for its version, and hands a request over.
//
// Texts are UTF-8 and end with a zero byte. A request is a JSON object: "kind" names what is to be done (kind.h), the
// rest is that kind's. The answer is one too, either
//   {"result": {…}, "text": "…"}     the command's JSON, and what a terminal shows instead
//   {"error": {"message", "file", "tensor", "values": [[key, text]…], "ways_out": […], "contexts": […]}}
// so that errors cross as data: no exception leaves the library, whatever its C++ runtime is.
#pragma once

#include <cstdint>

extern "C" {

// Raised by every change of what is declared here.
inline constexpr uint32_t kNibbleTrainAbi = 1;

// Of the program, valid during the call. Callbacks come from the thread that called; texts live as long as they run.
struct NibbleTrainHost {
  int32_t threads;                             // at least 1
  void* user;                                  // given to the callbacks
  void (*show)(void* user, const char* text);  // what it is at: each replaces the one before
  void (*note)(void* user, const char* text);  // one line that stays
};

// The kNibbleTrainAbi that the library was built with. Asked first: with another one nothing else may be called.
uint32_t nibble_train_abi();
// The answer, to be given back to nibble_train_free; null only if there is no memory for one. One call at a time.
char* nibble_train_run(const char* request, const NibbleTrainHost* host);
void nibble_train_free(char* answer);
}
