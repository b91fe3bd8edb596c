// PolicyWatch: tells when a policy file has become another one: written anew, replaced by a rename, or
// reached over a symbolic link that now leads elsewhere (as mounted Kubernetes volumes do). Reactor's thread.
//
// Only a changed content counts. What is seen half-written is another content, and so is what follows it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace cuplex::server {

class PolicyWatch {
 public:
  /// Blame::kSystem where its folder cannot be watched.
  static Result<PolicyWatch> Make(const std::string& path);

  /// Readable when something has happened around the file.
  int fd() const { return inotify_.get(); }
  /// Takes note of what has happened; true where the file holds something else than it did when this was
  /// made or last said so. A file that is gone has not changed.
  bool Changed();

 private:
  explicit PolicyWatch(std::string path) : path_(std::move(path)) {}
  Status WatchFolders();
  uint64_t Content() const;

  std::string path_;
  std::string real_folder_, real_name_;  // where the link leads
  UniqueFd inotify_;
  uint64_t content_ = 0;  // a hash, 0 where there is none
};

}  // namespace cuplex::server
