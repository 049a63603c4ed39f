#include "nibble/tokenizer/text_normalizer.h"

#include <unicode/unorm2.h>

#include "nibble/base/error.h"
#include "nibble/tokenizer/utf8.h"

namespace nibble {
namespace {

using Instance = const UNormalizer2* (*)(UErrorCode*);

struct Form {
  std::string_view name;
  Instance instance;
};

constexpr Form kForms[] = {
    {"NFC", unorm2_getNFCInstance},
    {"NFD", unorm2_getNFDInstance},
    {"NFKC", unorm2_getNFKCInstance},
    {"NFKD", unorm2_getNFKDInstance},
};

Error cannot(UErrorCode code) {
  Error error("Unicode normalization fails");
  error.value("reason", u_errorName(code)).way_out("give the text in smaller pieces");
  return error;
}

std::u16string normalized(const UNormalizer2* form, std::u16string text) {
  UErrorCode code = U_ZERO_ERROR;
  const auto units = static_cast<int32_t>(text.size());
  if (unorm2_spanQuickCheckYes(form, text.data(), units, &code) == units && U_SUCCESS(code)) return text;
  std::u16string out(text.size() + text.size() / 4 + 16, u'\0');
  for (int tries = 0; tries < 2; ++tries) {
    code = U_ZERO_ERROR;
    const int32_t needed =
        unorm2_normalize(form, text.data(), units, out.data(), static_cast<int32_t>(out.size()), &code);
    out.resize(static_cast<size_t>(needed));
    if (code != U_BUFFER_OVERFLOW_ERROR) break;
  }
  if (U_FAILURE(code)) throw cannot(code);
  return out;
}

}  // namespace

bool TextNormalizer::add(std::string_view name) {
  for (const Form& form : kForms) {
    if (form.name != name) continue;
    UErrorCode code = U_ZERO_ERROR;
    const UNormalizer2* instance = form.instance(&code);
    if (U_FAILURE(code)) throw cannot(code);
    forms_.push_back(instance);
    return true;
  }
  return false;
}

std::u16string TextNormalizer::apply(std::u16string text) const {
  for (const void* form : forms_) text = normalized(static_cast<const UNormalizer2*>(form), std::move(text));
  return text;
}

std::string TextNormalizer::apply_utf8(const std::string& text) const {
  if (changes_nothing()) return text;
  std::string out;
  append_utf8(apply(utf16_of(text)), &out);
  return out;
}

}  // namespace nibble
