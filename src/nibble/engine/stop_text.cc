#include "nibble/engine/stop_text.h"

#include <algorithm>
#include <utility>

namespace nibble {
namespace {

// Length of the longest end of `text` with which `stop` begins.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size()); n > 0; --n) {
    if (text.substr(text.size() - n) == stop.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

StopText::StopText(const Tokenizer* tokenizer, std::vector<std::string> stops,
                   std::function<void(std::string_view)> show)
    : stops_(std::move(stops)), show_(std::move(show)) {
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer);
  std::erase(stops_, "");
}

bool StopText::take(const std::string& text) {
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    show_(std::string_view(held_).substr(0, first));
    held_.clear();
    return true;
  }
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, begun(held_, stop));
  if (held_.size() > keep) show_(std::string_view(held_).substr(0, held_.size() - keep));
  held_.erase(0, held_.size() - keep);
  return false;
}

bool StopText::push(TokenId token) {
  if (!decoder_ || stopped_) return stopped_;
  return take(decoder_->push(token));
}

void StopText::finish() {
  if (!decoder_ || stopped_) return;
  if (take(decoder_->finish())) return;
  if (!held_.empty()) show_(held_);
  held_.clear();
}

}  // namespace nibble
