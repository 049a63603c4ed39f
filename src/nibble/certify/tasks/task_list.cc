// The tasks, one row each. Rows and nothing else; a row is a file of this folder.
#include "nibble/certify/tasks/task_row.h"

#define NIBBLE_TASKS(ROW) \
  ROW(kTableWalk)         \
  ROW(kRunningSum)        \
  ROW(kStateMachine)

namespace nibble {

#define ROW(task) extern const TaskRow task;
NIBBLE_TASKS(ROW)
#undef ROW

std::span<const TaskRow* const> task_rows() {
#define ROW(task) &task,
  static const TaskRow* const list[] = {NIBBLE_TASKS(ROW)};
#undef ROW
  return list;
}

}  // namespace nibble
