#include "server/policy_watch.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/inotify.h>
#include <unistd.h>

#include "policies/policy.h"
#include "server/image_store.h"

namespace cuplex::server {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR;

std::string FolderOf(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

Result<PolicyWatch> PolicyWatch::Make(const std::string& path) {
  PolicyWatch watch(path);
  watch.inotify_.reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch.inotify_) return FailErrno(errno, "cannot watch files");
  TRY(watch.WatchFolders());
  watch.content_ = watch.Content();
  return watch;
}

Status PolicyWatch::WatchFolders() {
  const std::string folder = FolderOf(path_);
  if (inotify_add_watch(inotify_.get(), folder.c_str(), kEvents) < 0)
    return FailErrno(errno, fmt::format("cannot watch the folder \"{}\"", folder));
  std::error_code error;
  const fs::path real = fs::canonical(path_, error);
  if (error) return {};
  real_name_ = real.filename().string();
  if (FolderOf(real) == real_folder_) return {};
  // What an old link led to may still tell of changes; they are looked at in vain.
  real_folder_ = FolderOf(real);
  if (inotify_add_watch(inotify_.get(), real_folder_.c_str(), kEvents) < 0)
    return FailErrno(errno, fmt::format("cannot watch the folder \"{}\"", real_folder_));
  return {};
}

uint64_t PolicyWatch::Content() const {
  std::ifstream in(path_, std::ios::binary);
  std::string text;
  char piece[4096];
  while (in.read(piece, sizeof(piece)) || in.gcount()) {
    text.append(piece, static_cast<size_t>(in.gcount()));
    if (text.size() > policies::kLongestPolicy) break;  // a longer one is refused, whatever it holds
  }
  return text.empty() ? 0 : HashImage(std::as_bytes(std::span(text))).low | 1;
}

bool PolicyWatch::Changed() {
  // The folder may be a busy one: only the file's own name counts, and what a volume's links are called.
  const std::string name = fs::path(path_).filename().string();
  const std::string real = real_name_;
  bool about_it = false;
  alignas(inotify_event) char events[4096];
  for (ssize_t got; (got = read(inotify_.get(), events, sizeof(events))) > 0;) {
    for (char* at = events; at < events + got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      const std::string_view changed = event->len ? std::string_view(event->name) : std::string_view();
      about_it |=
          changed == name || changed == real || changed.starts_with("..") || event->mask & IN_Q_OVERFLOW;
      at += sizeof(inotify_event) + event->len;
    }
  }
  if (!about_it) return false;
  (void)WatchFolders();  // a folder that is gone cannot tell of anything
  const uint64_t content = Content();
  if (!content || content == content_) return false;
  content_ = content;
  return true;
}

}  // namespace cuplex::server
