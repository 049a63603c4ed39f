#include "nibble/base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "nibble/base/error.h"

namespace nibble {
namespace {

// Wraps the library's own DOM builder to see what it would accept in silence: deep nesting and double keys.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(Json& root, const std::string& source_name) : dom_(root, false), source_(source_name) {}

  bool null() override { return dom_.null(); }
  bool boolean(bool value) override { return dom_.boolean(value); }
  bool number_integer(number_integer_t value) override { return dom_.number_integer(value); }
  bool number_unsigned(number_unsigned_t value) override { return dom_.number_unsigned(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!std::isfinite(value))
      throw Error("a number is out of range").file(source_).value("number", text).way_out("correct the file");
    return dom_.number_float(value, text);
  }
  bool string(string_t& value) override { return dom_.string(value); }
  bool binary(binary_t& value) override { return dom_.binary(value); }
  bool start_object(size_t size) override {
    enter();
    keys_.emplace_back();
    return dom_.start_object(size);
  }
  bool key(string_t& value) override {
    if (!keys_.back().insert(value).second)
      throw Error("a key stands twice in one object").file(source_).value("key", value).way_out("correct the file");
    return dom_.key(value);
  }
  bool end_object() override {
    --depth_;
    keys_.pop_back();
    return dom_.end_object();
  }
  bool start_array(size_t size) override {
    enter();
    return dom_.start_array(size);
  }
  bool end_array() override {
    --depth_;
    return dom_.end_array();
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    throw Error("not valid JSON")
        .file(source_)
        .value("byte", position)
        .value("parser", std::string(e.what()))
        .way_out("fetch the file again");
  }

 private:
  void enter() {
    if (++depth_ > kMaxJsonDepth)
      throw Error("JSON is nested too deeply")
          .file(source_)
          .value("limit", kMaxJsonDepth)
          .way_out("check that this is the right file");
  }

  nlohmann::detail::json_sax_dom_parser<Json> dom_;
  const std::string& source_;
  std::vector<std::set<std::string>> keys_;
  int depth_ = 0;
};

const Json* member(const Json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

[[noreturn]] void refuse_type(const Json& value, const std::string& key, const std::string& source_name,
                              const char* wanted) {
  throw Error(fmt::format("`{}` should be {}", key, wanted))
      .file(source_name)
      .value(key, value.dump().substr(0, 80))
      .way_out("correct the file");
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source_name) {
  Json root;
  StrictBuilder builder(root, source_name);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return root;
}

Json read_json(const Path& path, uint64_t limit) { return parse_json(read_text(path, limit), path.string()); }

std::string json_text(const Json& value) { return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::optional<uint64_t> json_uint(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (number >= 0 && number < 0x1p63 && number == std::floor(number)) return static_cast<uint64_t>(number);
  }
  refuse_type(*value, key, source_name, "a whole number of 0 or more");
}

std::optional<double> json_double(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse_type(*value, key, source_name, "a number");
  return value->get<double>();
}

std::optional<bool> json_bool(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_type(*value, key, source_name, "true or false");
  return value->get<bool>();
}

std::optional<std::string> json_string(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_type(*value, key, source_name, "a string");
  return value->get<std::string>();
}

}  // namespace nibble
