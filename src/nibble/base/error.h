// What a user, a file or the network got wrong: one exception that names the file, the tensor, the numbers and a way
// out.
//
//   throw Error("the span is shorter than the shape")
//       .file(path).tensor("w").value("shape_bytes", 4000000).value("span_bytes", 4)
//       .way_out("download the file again");
//
// Thrown anywhere, caught at the edge of the program (cli/), which prints it as text or as CLI.md's `error` object.
// Broken invariants of our own are not errors but NIBBLE_CHECK (base/check.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nibble {

class Error : public std::exception {
 public:
  explicit Error(std::string message);

  Error& file(std::string path);
  Error& tensor(std::string name);
  Error& value(std::string key, std::string text);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Error& value(std::string key, T number) {
    return value(std::move(key), std::to_string(number));
  }
  // Only a real bool: a string literal, too, converts to bool, and more readily than to std::string.
  template <std::same_as<bool> T>
  Error& value(std::string key, T yes) {
    return value(std::move(key), std::string(yes ? "true" : "false"));
  }
  Error& value(std::string key, float number);  // the shortest decimals that read back as the same number
  Error& value(std::string key, double number);
  Error& way_out(std::string text);
  // What was being done, outermost last: "reading the index" and so on.
  Error& context(std::string doing);

  // "message [while context] (file F, tensor T, key 1, key 2); try: …; or: …", one line, control characters escaped,
  // very long texts cut.
  const char* what() const noexcept override { return rendered_.c_str(); }
  const std::string& message() const { return message_; }
  const std::string& file() const { return file_; }
  const std::string& tensor() const { return tensor_; }
  const std::vector<std::pair<std::string, std::string>>& values() const { return values_; }
  const std::vector<std::string>& ways_out() const { return ways_out_; }
  const std::vector<std::string>& contexts() const { return context_; }

 private:
  void render();

  std::string message_, file_, tensor_, rendered_;
  std::vector<std::pair<std::string, std::string>> values_;
  std::vector<std::string> ways_out_, context_;
};

// Names from files are untrusted: control characters (marks that turn the direction of writing included) and broken
// UTF-8 become \xNN before they reach a terminal or a log.
std::string printable(std::string_view text);

}  // namespace nibble
