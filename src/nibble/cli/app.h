// The program: parses the command line, runs one command, words errors. Separate from main.cc so that tests can call
// it.
#pragma once

namespace nibble {

int run_app(int argc, const char* const* argv);

}  // namespace nibble
