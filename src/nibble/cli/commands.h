// The rows of command_list.cc.
#pragma once

#include "nibble/cli/command.h"

namespace nibble {

std::function<int()> setup_plan(CLI::App& app, CommonOptions& common);
std::function<int()> setup_inspect(CLI::App& app, CommonOptions& common);
std::function<int()> setup_verify(CLI::App& app, CommonOptions& common);
std::function<int()> setup_quantize(CLI::App& app, CommonOptions& common);
std::function<int()> setup_certify(CLI::App& app, CommonOptions& common);
std::function<int()> setup_train(CLI::App& app, CommonOptions& common);
std::function<int()> setup_tokenize(CLI::App& app, CommonOptions& common);
std::function<int()> setup_generate(CLI::App& app, CommonOptions& common);
std::function<int()> setup_kernels(CLI::App& app, CommonOptions& common);
std::function<int()> setup_bench(CLI::App& app, CommonOptions& common);

inline constexpr Command kPlanCommand{"plan", "what a model costs in each format, and where and how fast it can run",
                                      setup_plan};
inline constexpr Command kInspectCommand{"inspect", "what is in a checkpoint: family, formats, shapes, sizes",
                                         setup_inspect};
inline constexpr Command kVerifyCommand{"verify", "prove that a checkpoint is whole, consistent and read the right way",
                                        setup_verify};
inline constexpr Command kQuantizeCommand{"quantize", "round to nearest, or cast between low-bit formats",
                                          setup_quantize};
inline constexpr Command kCertifyCommand{"certify", "how long a candidate's answers stay the reference's",
                                         setup_certify};
inline constexpr Command kTrainCommand{"train", "train with weights rounded at every step, so that four bits cost less",
                                       setup_train};
inline constexpr Command kTokenizeCommand{"tokenize", "text to token ids and back, with the model's own tokenizer",
                                          setup_tokenize};
inline constexpr Command kGenerateCommand{"generate", "run a model: prompt in, text out", setup_generate};
inline constexpr Command kKernelsCommand{"kernels", "which kernel multiplies a format, and why each other one does not",
                                         setup_kernels};
inline constexpr Command kBenchCommand{"bench", "what this machine reaches, for plan to count with", setup_bench};

}  // namespace nibble
