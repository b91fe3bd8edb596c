// The calls of a session that concern linking.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "server/driver_call.h"
#include "server/session.h"

namespace cuplex::server {
namespace {

constexpr char kNoLink[] = "the number names no image that was linked for this process and is still kept.";

}  // namespace

Outcome Session::wireLink(const CallFrame& frame, const wire::wireLinkArgs& args, wire::wireLinkReply* reply,
                          std::string* text) {
  const auto refuse = [&](const Error& error) {
    *text = error.sentence;
    reply->mutate_info_bytes(0);
    return Refuse(error);
  };
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  ImageStore::Image request = tenant_.images.Find({args.hash_low(), args.hash_high()});
  if (!request) {
    Error error = Fail(Blame::kCaller,
                       "the server does not hold what is to be linked; its bytes did not come, "
                       "or not those of its hash.");
    error.driver_code = CUDA_ERROR_INVALID_IMAGE;
    return refuse(error);
  }
  if (links_.size() + links_at_work_ >= kMostLinks)
    return refuse(Fail(Blame::kExhausted,
                       "a process has {} links that it has not fetched, at most {} were "
                       "expected.",
                       links_.size() + links_at_work_, kMostLinks));
  const uint64_t most = tenant_.images.most_bytes();
  if (request->size() > most - std::min(most, tenant_.link_bytes))
    return refuse(Fail(Blame::kExhausted,
                       "{} bytes are to be linked with {} others at work or not fetched, at "
                       "most {} were expected.",
                       request->size(), tenant_.link_bytes, most));
  tenant_.link_bytes += request->size();
  ++links_at_work_;
  auto linked = std::make_shared<Linked>();
  Post(
      true,
      [linked, request, most, driver = context->driver(), &cu = house_.cu] {
        *linked = LinkImages(cu, driver, *request, most);
      },
      [this, linked, request, most, link = args.link(), slot = frame.slot, room = args.text_bytes(),
       number = frame.context] {
        --links_at_work_;
        tenant_.link_bytes -= request->size();
        if (ending_) return;  // nobody is there to fetch it
        const uint64_t bytes = linked->image.size();
        const auto instead = [&](CUresult code, const char* sentence) {
          *linked = {};
          linked->code = code;
          linked->errors = sentence;
        };
        if (!linked->code) {
          if (bytes > most - std::min(most, tenant_.link_bytes)) {
            instead(Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY),
                    "The tenant's programs have not fetched what was linked for them before.");
          } else if (links_.Insert(link, std::move(linked->image))) {
            tenant_.link_bytes += bytes;
          } else {
            instead(Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE),
                    "The number of the link is no handle, or one that is taken.");
          }
        } else if (IsSticky(linked->code)) {
          if (auto at = contexts_.find(number); at != contexts_.end() && at->second.context)
            at->second.context->Fail(linked->code);
        }
        AnswerLink(slot, *linked, linked->code ? 0 : bytes, room);
      });
  return Outcome::Later();
}

void Session::AnswerLink(uint32_t slot, const Linked& linked, uint64_t image_bytes, uint32_t text_bytes) {
  const std::string info = linked.info.substr(0, text_bytes);
  const std::string text = info + linked.errors.substr(0, text_bytes - info.size());
  wire::wireLinkReply reply{};
  reply.mutate_image_bytes(image_bytes);
  reply.mutate_wall_time(linked.wall_time);
  reply.mutate_threads(linked.threads);
  reply.mutate_info_bytes(static_cast<uint32_t>(info.size()));
  reply.mutate_text_bytes(static_cast<uint32_t>(text.size()));
  Answer(slot, linked.code, reply, text);
}

Outcome Session::wireLinkRead(const CallFrame&, const wire::wireLinkReadArgs& args, wire::wireLinkReadReply*,
                              std::string* data) {
  const std::string* image = links_.Find(args.link());
  if (!image) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE, kNoLink);
  if (args.offset() > image->size())
    return Refuse(
        metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE,
        fmt::format("a linked image of {} bytes is read from {} on.", image->size(), args.offset()));
  *data = image->substr(args.offset(), std::min<size_t>(args.data_bytes(), SlotCapacity(segment_)));
  return CUDA_SUCCESS;
}

void Session::DropLinks() {
  links_.ForEach([this](uint64_t, std::string& image) { tenant_.link_bytes -= image.size(); });
  links_ = {};
}

Outcome Session::wireLinkDestroy(const CallFrame&, const wire::wireLinkDestroyArgs& args) {
  const std::string* image = links_.Find(args.link());
  if (!image) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE, kNoLink);
  tenant_.link_bytes -= image->size();
  links_.Erase(args.link());
  return CUDA_SUCCESS;
}

}  // namespace cuplex::server
