#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "nibble/base/error.h"
#include "nibble/base/file.h"
#include "nibble/base/strings.h"
#include "nibble/cli/commands.h"
#include "nibble/tokenizer/tokenizer.h"

namespace nibble {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

struct TokenizeArgs {
  std::string model;
  std::optional<std::string> text, file, ids;
  bool control = false, bare = false;
};

std::string read_standard_input() {
  std::string text;
  char piece[1 << 16];
  while (const size_t bytes = std::fread(piece, 1, sizeof(piece), stdin)) {
    text.append(piece, bytes);
    if (text.size() > kMaxTextBytes)
      throw Error("standard input holds too much text").value("limit", kMaxTextBytes).way_out("give it in pieces");
  }
  return text;
}

std::vector<TokenId> parse_ids(const std::string& list, const Tokenizer& tokenizer, const std::string& model) {
  std::vector<TokenId> ids;
  if (list.empty()) return ids;
  for (const std::string_view word : split(list, ',')) {
    const size_t begin = word.find_first_not_of(" []\n");
    const size_t end = word.find_last_not_of(" []\n");
    const std::string_view number = begin == std::string_view::npos ? "" : word.substr(begin, end + 1 - begin);
    TokenId id = 0;
    const auto [rest, code] = std::from_chars(number.data(), number.data() + number.size(), id);
    if (number.empty() || rest != number.data() + number.size() || code == std::errc::invalid_argument)
      throw UsageError(Error("an id is not a whole number").value("id", std::string(word)).way_out("--decode 1,2,3"));
    if (code != std::errc() || id < 0 || id >= tokenizer.size()) {
      throw Error("the tokenizer has no such id")
          .file(model)
          .value("id", std::string(number))
          .value("ids", tokenizer.size())
          .way_out("name ids from 0 up to one less than that");
    }
    ids.push_back(id);
  }
  return ids;
}

std::vector<TokenId> encode(const TokenizeArgs& args, const Tokenizer& tokenizer) {
  const std::string text = args.text           ? *args.text
                           : *args.file == "-" ? read_standard_input()
                                               : read_text(*args.file, kMaxTextBytes);
  std::vector<TokenId> ids = tokenizer.encode_spans({{text, args.control}});
  if (args.bare) return ids;
  ids.insert(ids.begin(), tokenizer.prefix().begin(), tokenizer.prefix().end());
  ids.insert(ids.end(), tokenizer.suffix().begin(), tokenizer.suffix().end());
  return ids;
}

std::string token_lines(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string lines;
  for (const TokenId id : ids)
    lines += fmt::format("{:>8}  {}{}\n", id, printable(tokenizer.bytes_of(id)),
                         tokenizer.is_control(id) ? "  (control)" : "");
  return lines;
}

int run_tokenize(const TokenizeArgs& args, const CommonOptions& common) {
  if (int{args.text.has_value()} + int{args.file.has_value()} + int{args.ids.has_value()} != 1)
    throw UsageError(Error("give one text").way_out("one of -p TEXT, --file FILE and --decode ID,ID,…"));
  const auto tokenizer = load_tokenizer(args.model);
  const std::vector<TokenId> ids = args.ids ? parse_ids(*args.ids, *tokenizer, args.model) : encode(args, *tokenizer);
  const std::string text = decode_tokens(*tokenizer, ids, true);
  if (common.json) {
    print_json(Json{{"tokens", ids}, {"text", text}});
  } else {
    print_out(args.ids ? text + "\n" : token_lines(*tokenizer, ids));
  }
  return kExitDone;
}

}  // namespace

std::function<int()> setup_tokenize(CLI::App& app, CommonOptions& common) {
  auto args = std::make_shared<TokenizeArgs>();
  app.add_option("model", args->model, "a checkpoint folder, a .gguf file or a tokenizer.json")
      ->required()
      ->type_name("MODEL");
  app.add_option("-p,--prompt", args->text, "the text to encode")->type_name("TEXT");
  app.add_option("--file", args->file, "a file to encode; - is standard input")->type_name("FILE");
  app.add_option("--decode", args->ids, "the text of these ids instead")->type_name("ID,ID,…");
  app.add_flag("--control", args->control, "take what spells a control token as that token, not as text");
  app.add_flag("--bare", args->bare, "without the tokens that the model's configuration puts around a prompt");
  app.footer("Example:\n  nibble tokenize ./Qwen3-30B-A3B -p \"Hello world\"");
  return [args, &common] { return run_tokenize(*args, common); };
}

}  // namespace nibble
