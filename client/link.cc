#include "client/link.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "client/exports.h"
#include "client/image.h"
#include "cuda/fatbin.h"

namespace cuplex::client {

CUresult LinkTable::Create(uint32_t context, JitOptions options, Handle* out) {
  std::lock_guard lock(mutex_);
  const Handle h = source_.Take();
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  auto link = std::make_shared<PendingLink>();
  link->context = context;
  EncodeLinkOptions(options.numbers(), &link->request);
  link->options = std::move(options);
  links_[h] = std::move(link);
  *out = h;
  return CUDA_SUCCESS;
}

std::shared_ptr<PendingLink> LinkTable::Find(Handle link) {
  std::lock_guard lock(mutex_);
  auto it = links_.find(link);
  return it == links_.end() ? nullptr : it->second;
}

CUresult LinkTable::Destroy(Handle link) {
  std::lock_guard lock(mutex_);
  if (!links_.erase(link)) return CUDA_ERROR_INVALID_HANDLE;
  source_.Return(link);
  return CUDA_SUCCESS;
}

namespace {

/// The link of a handle, held.
struct Held {
  Caller caller;
  std::shared_ptr<PendingLink> link;
  std::unique_lock<std::mutex> lock;
};

CUresult Hold(CUlinkState state, Held* held) {
  if (CUresult r = EnterContext(&held->caller)) return r;
  held->link = held->caller.session->links.Find(reinterpret_cast<Handle>(state));
  if (!held->link) return CUDA_ERROR_INVALID_HANDLE;
  held->lock = std::unique_lock(held->link->mutex);
  return CUDA_SUCCESS;
}

CUresult Refuse(const JitOptions& options, CUresult code, const std::string& sentence) {
  Log().warn("a link fails: {}", sentence);
  options.WriteLogs({}, sentence);
  return code;
}

CUresult Create(unsigned count, CUjit_option* names, void** values, CUlinkState* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  JitOptions options;
  if (CUresult r = options.Read(count, names, values)) return r;
  if (options.names_symbols())
    return Refuse(options, CUDA_ERROR_NOT_SUPPORTED,
                  "an option of cuLinkCreate names symbols of this process, which the server's linker cannot "
                  "look at.");
  Handle h;
  if (CUresult r = caller.session->links.Create(caller.number, std::move(options), &h)) return r;
  *out = reinterpret_cast<CUlinkState>(h);
  return CUDA_SUCCESS;
}

CUresult Add(CUlinkState state, CUjitInputType type, std::span<const std::byte> data, const char* name,
             unsigned count, CUjit_option* names, void** values) {
  Held held;
  if (CUresult r = Hold(state, &held)) return r;
  PendingLink& link = *held.link;
  if (!data.data() || data.empty() || !link.image.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (type < 0 || type >= CU_JIT_NUM_INPUT_TYPES) return CUDA_ERROR_INVALID_VALUE;
  JitOptions options;
  if (CUresult r = options.Read(count, names, values)) return r;
  if (options.names_symbols())
    return Refuse(
        link.options, CUDA_ERROR_NOT_SUPPORTED,
        "an option of cuLinkAddData names symbols of this process, which the server's linker cannot "
        "look at.");
  if (link.inputs == kMostLinkInputs || data.size() > kMostImageBytes ||
      link.request.size() > kMostImageBytes - data.size())
    return Refuse(
        link.options, CUDA_ERROR_OUT_OF_MEMORY,
        fmt::format("{} bytes are to be linked with {} others of {} inputs, at most {} bytes of {} "
                    "inputs were expected.",
                    data.size(), link.request.size(), link.inputs, kMostImageBytes, kMostLinkInputs));
  const std::string called = name && *name ? name : fmt::format("input {}", link.inputs + 1);
  EncodeLinkInput(type, called, data, options.numbers(), &link.request);
  ++link.inputs;
  return CUDA_SUCCESS;
}

CUresult AddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                 CUjit_option* names, void** values) {
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  std::string bytes;
  if (CUresult r = ReadImageFile(path, &bytes)) {
    Held held;
    if (CUresult wrong = Hold(state, &held)) return wrong;
    return Refuse(held.link->options, r, fmt::format("{}: cannot be read.", path));
  }
  return Add(state, type, std::as_bytes(std::span(bytes)), path, count, names, values);
}

/// Fetches the image that the server keeps under the number.
CUresult Fetch(Session& session, uint32_t context, Handle number, uint64_t bytes, std::string* image) {
  const uint32_t room = SlotCapacity(session.segment()) - sizeof(wire::wireLinkReadReply);
  std::string piece;
  while (image->size() < bytes) {
    wire::wireLinkReadReply reply;
    const wire::wireLinkReadArgs args(number, image->size(), room);
    if (CUresult r = session.submission().Ask(Op::wireLinkRead, context, args, &reply, {}, &piece)) return r;
    if (piece.empty()) return CUDA_ERROR_UNKNOWN;
    image->append(piece, 0, reply.data_bytes());
  }
  return CUDA_SUCCESS;
}

CUresult Complete(Held& held, Handle number) {
  PendingLink& link = *held.link;
  Session& session = *held.caller.session;
  link.inputs = 0;
  const std::string request = std::exchange(link.request, {});
  const Image image = ImageOf(std::as_bytes(std::span(request)));
  if (CUresult r = session.modules.Send(session, link.context, image)) return r;
  wire::wireLinkReply reply{};
  std::string text;
  const uint32_t room = SlotCapacity(session.segment()) - sizeof(reply);
  const wire::wireLinkArgs args(number, image.hash_low, image.hash_high, room);
  CUresult r = session.submission().Ask(Op::wireLink, link.context, args, &reply, {}, &text);
  const std::string_view said = text;
  const size_t info = std::min<size_t>(reply.info_bytes(), said.size());
  link.options.WriteLogs(said.substr(0, info), said.substr(info));
  if (r) {
    if (info < said.size()) Log().warn("a link fails: {}", said.substr(info));
    return r;
  }
  link.options.WriteResults(reply.wall_time(), reply.threads());
  std::string linked;
  linked.reserve(reply.image_bytes());
  r = Fetch(session, link.context, number, reply.image_bytes(), &linked);
  (void)session.submission().Post(Op::wireLinkDestroy, link.context, wire::wireLinkDestroyArgs(number));
  if (!r) link.image = std::move(linked);
  return r;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuLinkCreate(unsigned int numOptions, CUjit_option* options, void** optionValues,
                      CUlinkState* stateOut) {
  return Create(numOptions, options, optionValues, stateOut);
}
CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                         CUlinkState* stateOut) {
  return Create(numOptions, options, optionValues, stateOut);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return Add(state, type, {static_cast<const std::byte*>(data), size}, name, numOptions, options,
             optionValues);
}
CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned int numOptions, CUjit_option* options, void** optionValues) {
  return Add(state, type, {static_cast<const std::byte*>(data), size}, name, numOptions, options,
             optionValues);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions,
                       CUjit_option* options, void** optionValues) {
  return AddFile(state, type, path, numOptions, options, optionValues);
}
CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions,
                          CUjit_option* options, void** optionValues) {
  return AddFile(state, type, path, numOptions, options, optionValues);
}

CUresult cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
  Held held;
  if (CUresult r = Hold(state, &held)) return r;
  PendingLink& link = *held.link;
  if (!cubinOut || (link.inputs == 0 && link.image.empty())) return CUDA_ERROR_INVALID_VALUE;
  if (link.image.empty())
    if (CUresult r = Complete(held, reinterpret_cast<Handle>(state))) return r;
  *cubinOut = link.image.data();
  if (sizeOut) *sizeOut = link.image.size();
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->links.Destroy(reinterpret_cast<Handle>(state));
}

}  // extern "C"
