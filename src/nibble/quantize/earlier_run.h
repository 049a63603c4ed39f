// What an earlier run has left in a target, finished or not, and --restart removes.
#pragma once

#include "nibble/base/file.h"

namespace nibble {

// Its index first and its manifest last, so that nothing of it can be loaded together with what comes now; its weights
// as manifest and journal name them, or, where one of these is damaged, all files with names that this program gives;
// what was being written. Other files stay, whatever a manifest or a journal says. Under a FolderLock, and with nobody
// else at work.
void remove_earlier_run(const Path& target);

}  // namespace nibble
