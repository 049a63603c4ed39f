// The next token is the entry of the last two in a drawn table. The walk is a function of V · V contexts onto
// themselves: from a random start it comes back to one after about 1.25 V steps, and runs in circles from there.
#include <memory>

#include "nibble/certify/tasks/table_task.h"
#include "nibble/certify/tasks/task_row.h"

namespace nibble {
namespace {

constexpr std::string_view kName = "table-walk";

class TableWalk final : public TableTask {
 public:
  explicit TableWalk(const TaskOptions& options) : TableTask(kName, TaskInputs::kNone, options) {}

 private:
  uint64_t next(const TableStep& step) const override { return drawn_entry(step); }
};

std::unique_ptr<Task> make(const TaskOptions& options) { return std::make_unique<TableWalk>(options); }

}  // namespace

extern const TaskRow kTableWalk = {kName, make};

}  // namespace nibble
