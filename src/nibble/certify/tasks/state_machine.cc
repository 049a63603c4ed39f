// A drawn machine: the next state is the entry of the last state and a random input. Contexts go on being fresh draws
// however long a chain is, and one wrong state is forgotten only where two states lead to the same one.
#include <memory>

#include "nibble/certify/tasks/table_task.h"
#include "nibble/certify/tasks/task_row.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "state-machine";

class StateMachine final : public TableTask {
 public:
  explicit StateMachine(const TaskOptions& options) : TableTask(kName, TaskInputs::kBehindEachState, options) {}

 private:
  uint64_t next(const TableStep& step) const override { return drawn_entry(step); }
};

std::unique_ptr<Task> make(const TaskOptions& options) { return std::make_unique<StateMachine>(options); }

}  // namespace

extern const TaskRow kStateMachine = {kName, make};

}  // namespace nibble
