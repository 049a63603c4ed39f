// One task of the list: a file with a class and a row, and that row in task_list.cc.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "nibble/certify/tasks/task.h"

namespace nibble {

struct TaskRow {
  std::string_view name;  // as in --task
  // Options are within the limits of TaskOptions; Error for those that this task cannot have.
  std::unique_ptr<Task> (*make)(const TaskOptions& options);
};

// The list: task_list.cc holds its rows and nothing else.
std::span<const TaskRow* const> task_rows();

}  // namespace nibble
