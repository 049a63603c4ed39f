// One pass over a family's inventory that finds each parameter's weight by its name, and the findings about what does
// not fit. Bounded work: the inventory is visited once, every name is hashed once, messages are grouped by kind.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nibble/checkpoint/name_index.h"
#include "nibble/models/model.h"
#include "nibble/models/name_groups.h"

namespace nibble {

// Fills model->params and corrects shape and row_order of model->table's weights. family and spec are set.
class Matcher {
 public:
  Matcher(const Checkpoint& checkpoint, Model* model, Findings* findings);
  void run();

 private:
  // Gate and up, and down, may be stored in different forms.
  struct LayerForms {
    ExpertStorage gate_up, down;
  };

  void visit(ParamSpec&& param);
  void place(ParamSpec&& param);
  void assign(uint32_t index, ParamSpec&& param);
  void note_missing(const ParamSpec& param);
  const LayerForms& forms_of(int32_t layer);
  ExpertStorage gate_up_form(int32_t layer) const;
  ExpertStorage down_form(int32_t layer, ExpertStorage gate_up) const;
  bool any_expert_alone(int32_t layer, Projection projection) const;
  bool interleaved(int64_t weight) const;
  void classify_rest();
  bool in_other_part(std::string_view name) const;
  void check_shape(uint32_t index, const ParamSpec& param);
  void report();
  void report_ties();
  void report_empty_and_unmatched();
  void report_copied();
  Finding finding(Severity severity, const char* rule, const NameGroup& group, std::string message) const;

  const Checkpoint& checkpoint_;
  Model& model_;
  Findings& findings_;
  NameIndex names_;
  std::vector<bool> matched_;
  std::map<int32_t, LayerForms> forms_;
  NameGroups empty_, unmatched_, other_part_, wrong_shape_, mtp_missing_;
  std::vector<Finding> shape_findings_;  // one a group of wrong_shape_
  bool mtp_present_ = false, head_present_ = false, head_missing_ = false;
  std::string head_name_;
};

}  // namespace nibble
