#include "protocol/link_request.h"

#include "base/span_reader.h"

namespace cuplex {
namespace {

void Append(uint64_t value, size_t bytes, std::string* to) {
  for (size_t i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

Error TooShort(const char* part, size_t at) {
  return Fail(Blame::kCaller, "the request for a link ends at byte {} in the middle of {}.", at, part);
}

Result<std::vector<LinkOption>> DecodeOptions(SpanReader& in) {
  auto count = in.Read<uint32_t>();
  if (!count) return TooShort("the number of its options", in.at());
  if (*count > kMostLinkOptions)
    return Fail(Blame::kCaller, "a link has {} options, at most {} were expected.", *count, kMostLinkOptions);
  std::vector<LinkOption> options;
  for (uint32_t i = 0; i < *count; ++i) {
    auto option = in.Read<LinkOption>();
    if (!option) return TooShort("an option", in.at());
    if (!LinkOption::Travels(option->option))
      return Fail(Blame::kCaller, "the option {} of a link is no number that a server can use.",
                  option->option);
    options.push_back(*option);
  }
  return options;
}

}  // namespace

bool LinkOption::Travels(uint32_t option) {
  switch (option) {
    case CU_JIT_INFO_LOG_BUFFER:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_GLOBAL_SYMBOL_NAMES:
    case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
    case CU_JIT_GLOBAL_SYMBOL_COUNT:
    case CU_JIT_REFERENCED_KERNEL_NAMES:
    case CU_JIT_REFERENCED_KERNEL_COUNT:
    case CU_JIT_REFERENCED_VARIABLE_NAMES:
    case CU_JIT_REFERENCED_VARIABLE_COUNT:
      return false;
    default:
      return option < CU_JIT_NUM_OPTIONS;
  }
}

void EncodeLinkOptions(std::span<const LinkOption> options, std::string* request) {
  Append(options.size(), 4, request);
  for (const LinkOption& each : options) {
    Append(each.option, 4, request);
    Append(each.value, 4, request);
  }
}

void EncodeLinkInput(CUjitInputType type, std::string_view name, std::span<const std::byte> data,
                     std::span<const LinkOption> options, std::string* request) {
  name = name.substr(0, kMostLinkNameBytes);
  Append(static_cast<uint32_t>(type), 4, request);
  Append(name.size(), 4, request);
  Append(data.size(), 8, request);
  EncodeLinkOptions(options, request);
  request->append(name);
  request->append(reinterpret_cast<const char*>(data.data()), data.size());
}

Result<LinkRequest> DecodeLinkRequest(std::span<const std::byte> request) {
  SpanReader in(request);
  LinkRequest out;
  TRY(out.options, DecodeOptions(in));
  while (in.left()) {
    if (out.inputs.size() == kMostLinkInputs)
      return Fail(Blame::kCaller, "a link has more than {} inputs.", kMostLinkInputs);
    auto type = in.Read<uint32_t>();
    auto name_bytes = in.Read<uint32_t>();
    auto data_bytes = in.Read<uint64_t>();
    if (!type || !name_bytes || !data_bytes) return TooShort("what an input is", in.at());
    if (*type >= CU_JIT_NUM_INPUT_TYPES)
      return Fail(Blame::kCaller, "an input of a link has the type {}, 0 to {} were expected.", *type,
                  CU_JIT_NUM_INPUT_TYPES - 1);
    if (*name_bytes > kMostLinkNameBytes)
      return Fail(Blame::kCaller, "the name of a link's input has {} bytes, at most {} were expected.",
                  *name_bytes, kMostLinkNameBytes);
    LinkInput& input = out.inputs.emplace_back();
    input.type = static_cast<CUjitInputType>(*type);
    TRY(input.options, DecodeOptions(in));
    auto name = in.Bytes(*name_bytes);
    if (!name) return TooShort("an input's name", in.at());
    input.name.assign(reinterpret_cast<const char*>(name->data()), name->size());
    input.name.resize(input.name.find('\0') == std::string::npos ? name->size() : input.name.find('\0'));
    auto data = in.Bytes(*data_bytes);
    if (!data) return TooShort("an input's bytes", in.at());
    if (data->empty()) return Fail(Blame::kCaller, "an input of a link has no bytes.");
    input.data = *data;
  }
  if (out.inputs.empty()) return Fail(Blame::kCaller, "a link has no inputs.");
  return out;
}

}  // namespace cuplex
