// What all kinds of `nibble bench` share: ceilings of the same run, and rows set against them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nibble/cli/command.h"
#include "nibble/engine/bench/pass_row.h"
#include "nibble/engine/weights/linear.h"
#include "nibble/engine/work.h"
#include "nibble/hardware/device.h"

namespace nibble {

struct BenchSettings {
  std::vector<std::string> shapes;   // empty: each kind's own choice
  std::vector<std::string> formats;  // empty: the field's four-bit ones
  std::vector<uint64_t> tokens;      // empty: each kind's own choice
  std::string scheme = "w4a8", kernel;
  double seconds = 0.5;  // of each row
  bool check = true;

  std::vector<std::string> wanted_formats() const;
  Arithmetics arithmetic() const;
};

struct BenchRow {
  std::string op, shape, format, scheme, kernel;
  uint64_t tokens = 0, runs = 1;
  double seconds = 0;         // of a run
  std::vector<OpWork> steps;  // of a run, one after the other
  std::optional<double> check_error;
  std::optional<uint64_t> context;  // of passes
};

BenchRow row_of(const PassRow& pass);

// Ceilings before and after what is measured; the better of both counts.
class BenchCeilings {
 public:
  BenchCeilings(const BenchSettings& settings, const CommonOptions& common);  // measures
  Device best() const;                                                        // measures again

 private:
  Device measure() const;
  double seconds_;
  int threads_;
  Device before_;
};

double percent_of_floor(const BenchRow& row, const Device& machine);
Json rows_json(const std::vector<BenchRow>& rows, const Device& machine);
std::string ceilings_text(const Device& machine);
// "none" for the same bits.
std::string error_cell(const std::optional<double>& error);
// Rows of passes: tokens a second.
std::string passes_text(const std::vector<BenchRow>& rows, const Device& machine);

// Warns of rows above their floor. The exit code: refused if a row's numbers were not the reference's.
int judge(const std::vector<BenchRow>& rows, const Device& machine);

}  // namespace nibble
