// A task as somebody would add one: each symbol is the sum of the two before it, and one more.
#include <memory>

#include "nibble/certify/tasks/table_task.h"
#include "nibble/certify/tasks/task_row.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "canary-sum";

class CanarySum final : public TableTask {
 public:
  explicit CanarySum(const TaskOptions& options) : TableTask(kName, TaskInputs::kNone, options) {}

 private:
  uint64_t next(const TableStep& step) const override { return (step.a + step.b + 1) % options().symbols; }
};

std::unique_ptr<Task> make(const TaskOptions& options) { return std::make_unique<CanarySum>(options); }

}  // namespace

extern const TaskRow kCanaryTask;
const TaskRow kCanaryTask = {kName, make};

}  // namespace nibble
