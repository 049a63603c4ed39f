// What all benchmarks of the engine make of what they measured.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace nibble {

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How far numbers are from those that they should equal.
class LargestError {
 public:
  void add(float got, float wanted) {
    const double exact = static_cast<double>(wanted);
    const double difference = std::abs(static_cast<double>(got) - exact);
    // What is no number equals nothing.
    most_ = std::max(most_, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    largest_ = std::max(largest_, std::abs(exact));
  }
  void add(std::span<const float> got, std::span<const float> wanted) {
    for (size_t i = 0; i < wanted.size(); ++i) add(got[i], wanted[i]);
  }

  // As a share of the largest number; 0: all are equal.
  double share() const { return largest_ == 0 ? most_ : most_ / largest_; }

 private:
  double most_ = 0, largest_ = 0;
};

}  // namespace nibble
