// What the interpreter takes back when a scope is left, by an error too.
#pragma once

#include <utility>

#include "nibble/chat/interpreter.h"

namespace nibble::jinja {

// A frame of its own for a scope.
class Interpreter::FrameGuard {
 public:
  FrameGuard(Interpreter& interpreter, Frame* outer)
      : interpreter_(interpreter), before_(interpreter.frame_), frame_(std::make_unique<Frame>()) {
    frame_->outer = outer;
    interpreter_.frame_ = frame_.get();
  }
  FrameGuard(const FrameGuard&) = delete;
  FrameGuard& operator=(const FrameGuard&) = delete;
  ~FrameGuard() {
    interpreter_.frame_ = before_;
    if (frame_->is_kept) interpreter_.kept_.push_back(std::move(frame_));
  }
  Frame& frame() { return *frame_; }
  // Runs in the frame outside, or in this one again.
  void leave() { interpreter_.frame_ = before_; }
  void enter() { interpreter_.frame_ = frame_.get(); }

 private:
  Interpreter& interpreter_;
  Frame* before_;
  std::unique_ptr<Frame> frame_;
};

// How deep statements and expressions stand in each other, through macros: what that takes of the stack.
class Interpreter::LevelGuard {
 public:
  explicit LevelGuard(Interpreter& interpreter) : interpreter_(interpreter) {
    interpreter_.budget.step();
    interpreter_.budget.check_depth(++interpreter_.level_ / kLevels);
  }
  LevelGuard(const LevelGuard&) = delete;
  LevelGuard& operator=(const LevelGuard&) = delete;
  ~LevelGuard() { --interpreter_.level_; }

 private:
  static constexpr uint32_t kLevels = 6;
  Interpreter& interpreter_;
};

// Output goes into a text of its own.
class Interpreter::OutputGuard {
 public:
  explicit OutputGuard(Interpreter& interpreter)
      : interpreter_(interpreter), before_(interpreter.out_), text_(interpreter.budget) {
    interpreter_.out_ = &text_;
  }
  OutputGuard(const OutputGuard&) = delete;
  OutputGuard& operator=(const OutputGuard&) = delete;
  ~OutputGuard() { interpreter_.out_ = before_; }
  Value finish() { return Value{text_.finish()}; }
  void leave() { interpreter_.out_ = before_; }

 private:
  Interpreter& interpreter_;
  TextBuilder* before_;
  TextBuilder text_;
};

}  // namespace nibble::jinja
