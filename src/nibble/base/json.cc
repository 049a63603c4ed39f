#include "nibble/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "nibble/base/error.h"
#include "nibble/base/json_non_finite.h"

namespace nibble {
namespace {

// Long tokens of a hostile file do not belong in a message.
constexpr size_t kQuotedBytes = 200;

// Builds the value itself instead of through the library's own builder, which takes double keys in silence and looks
// every new key of an ordered object up from the front: 500,000 names take more than ten minutes.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  // `non_finite`: numbers that the text had words for.
  StrictBuilder(const std::string& source_name, const std::vector<NonFinite>& non_finite)
      : source_(source_name), next_(non_finite.begin()), end_(non_finite.end()) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add_number(value); }
  bool number_unsigned(number_unsigned_t value) override { return add_number(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add_number(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // no such thing in text
  bool start_object(size_t /*size*/) override { return open(Json::object()); }
  bool start_array(size_t /*size*/) override { return open(Json::array()); }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool end_object() override {
    refuse_double_keys(*open_.back());
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception& e) override {
    constexpr int kNumberOverflow = 406;
    if (e.id == kNumberOverflow)
      throw Error("a number is out of range")
          .file(source_)
          .value("number", token.substr(0, kQuotedBytes))
          .way_out("correct the file");
    throw Error("not valid JSON")
        .file(source_)
        .value("byte", position > 0 ? position - 1 : 0)
        .value("parser", std::string(e.what()).substr(0, kQuotedBytes))
        .way_out("fetch the file again");
  }

 private:
  // The places in open_ stay where they are: a container grows only while nothing inside it is open.
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array()) return open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    return open_.back()->get_ref<Json::object_t&>().emplace_back(std::move(key_), std::move(value)).second;
  }

  template <typename T>
  bool add(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }

  template <typename T>
  bool add_number(T value) {
    if (next_ == end_ || next_->number != numbers_++) return add(value);
    return add((next_++)->value);
  }

  bool open(Json container) {
    if (open_.size() == kMaxJsonDepth)
      throw Error("JSON is nested too deeply")
          .file(source_)
          .value("limit", kMaxJsonDepth)
          .way_out("check that this is the right file");
    open_.push_back(&place(std::move(container)));
    return true;
  }

  void refuse_double_keys(const Json& object) const {
    std::vector<std::string_view> keys;
    keys.reserve(object.size());
    for (const auto& [key, value] : object.get_ref<const Json::object_t&>()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return;
    throw Error("a key stands twice in one object")
        .file(source_)
        .value("key", std::string(*twice))
        .way_out("correct the file");
  }

  const std::string& source_;
  std::vector<NonFinite>::const_iterator next_, end_;
  uint64_t numbers_ = 0;  // seen so far; counted only while some are to come
  Json root_;
  std::vector<Json*> open_;  // the containers being filled, outermost first
  std::string key_;          // of the next value of an object
};

std::string described(const Json& value) {
  if (value.is_object()) return fmt::format("an object of {} members", value.size());
  if (value.is_array()) return fmt::format("an array of {} values", value.size());
  std::string text;
  append_json(&text, value);
  return text.substr(0, kQuotedBytes);
}

[[noreturn]] void refuse_type(const Json& value, const std::string& key, const std::string& source_name,
                              const char* wanted) {
  throw Error(fmt::format("`{}` should be {}", key, wanted))
      .file(source_name)
      .value(key, described(value))
      .way_out("correct the file");
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source_name) {
  // The library takes a zero byte for the end of the text and would not see what follows.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw Error("not valid JSON: a zero byte").file(source_name).value("byte", zero).way_out("fetch the file again");
  const FiniteText finite = without_non_finite(text);
  if (!finite.non_finite.empty()) text = finite.replaced;
  StrictBuilder builder(source_name, finite.non_finite);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Json read_json(const Path& path, uint64_t limit) { return parse_json(read_text(path, limit), path.string()); }

std::string json_text(const Json& value) {
  std::string text;
  append_json(&text, value);
  return text + "\n";
}

std::string strict_json_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

const Json* json_member(const Json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::optional<uint64_t> json_uint(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = json_member(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() || (value->is_number_integer() && value->get<int64_t>() >= 0))
    return value->get<uint64_t>();
  if (value->is_number_float()) {
    const double number = value->get<double>();
    if (number >= 0 && number < 0x1p63 && number == std::floor(number)) return static_cast<uint64_t>(number);
  }
  refuse_type(*value, key, source_name, "a whole number of 0 or more");
}

std::optional<double> json_double(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = json_member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse_type(*value, key, source_name, "a number");
  if (!std::isfinite(value->get<double>())) refuse_type(*value, key, source_name, "a finite number");
  return value->get<double>();
}

std::optional<bool> json_bool(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = json_member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_type(*value, key, source_name, "true or false");
  return value->get<bool>();
}

std::optional<std::string> json_string(const Json& object, const std::string& key, const std::string& source_name) {
  const Json* value = json_member(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_type(*value, key, source_name, "a string");
  return value->get<std::string>();
}

}  // namespace nibble
