// The next sum is the last one, as it was written, plus a random input, mod V. A table that has a rule: what a model
// knows of it does not have to be learned by heart.
#include <memory>

#include "nibble/base/error.h"
#include "nibble/certify/tasks/table_task.h"
#include "nibble/certify/tasks/task_row.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "running-sum";

class RunningSum final : public TableTask {
 public:
  explicit RunningSum(const TaskOptions& options) : TableTask(kName, TaskInputs::kBehindEachState, options) {}

 private:
  uint64_t next(const TableStep& step) const override { return (step.a + step.b) % options().symbols; }
};

std::unique_ptr<Task> make(const TaskOptions& options) {
  // Several names of one table would make clusters that are none.
  if (options.tables != 1) {
    throw Error("running-sum has one table, addition")
        .value("tables", options.tables)
        .way_out("leave `tables` out")
        .way_out("state-machine has inputs and as many tables as are asked for");
  }
  return std::make_unique<RunningSum>(options);
}

}  // namespace

extern const TaskRow kRunningSum = {kName, make};

}  // namespace nibble
