#include "tools/control_ask.h"

#include <span>
#include <utility>

#include "protocol/control_socket.h"
#include "protocol/frame.h"

namespace cuplex::tools {
namespace {

using flatbuffers::FlatBufferBuilder;

Result<std::vector<std::byte>> Ask(const ControlPlace& place, FlatBufferBuilder& b, control::AskBody kind,
                                   flatbuffers::Offset<void> body) {
  b.Finish(control::CreateAsk(b, kProtocolVersion, kind, body));
  return AskControl(place.endpoint, std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize())),
                    place.timeout_ms);
}

Result<const control::Reply*> Verified(std::span<const std::byte> bytes) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (!verifier.VerifyBuffer<control::Reply>(nullptr))
    return Fail(Blame::kOurs, "The server answered {} bytes that are no reply; is it of another version?",
                bytes.size());
  const auto* reply = flatbuffers::GetRoot<control::Reply>(bytes.data());
  if (const auto* failure = reply->body_as_Failure()) {
    return Fail(
        Blame::kRefused, "{}",
        failure->sentence() ? failure->sentence()->string_view() : "The server refuses and gives no reason.");
  }
  return reply;
}

Status Done(std::span<const std::byte> bytes) {
  TRY(const control::Reply* reply, Verified(bytes));
  if (!reply->body_as_Done())
    return Fail(Blame::kOurs, "The server answered with a {}, Done was expected; is it of another version?",
                control::EnumNameReplyBody(reply->body_type()));
  return {};
}

}  // namespace

Result<StatusAnswer> StatusAnswer::Read(std::vector<std::byte> bytes) {
  TRY(const control::Reply* reply, Verified(bytes));
  if (!reply->body_as_Status())
    return Fail(Blame::kOurs, "The server answered with a {}, Status was expected; is it of another version?",
                control::EnumNameReplyBody(reply->body_type()));
  return StatusAnswer(std::move(bytes));
}

Result<RecordAnswer> RecordAnswer::Read(std::vector<std::byte> bytes) {
  TRY(const control::Reply* reply, Verified(bytes));
  const control::Record* record = reply->body_as_Record();
  if (!record)
    return Fail(Blame::kOurs, "The server answered with a {}, Record was expected; is it of another version?",
                control::EnumNameReplyBody(reply->body_type()));
  const size_t names = record->tenants() ? record->tenants()->size() : 0;
  if (record->work())
    for (const control::RecordedWork* work : *record->work())
      if (work->tenant() >= names)
        return Fail(Blame::kOurs, "The server's record names tenant {} of {}.", work->tenant(), names);
  return RecordAnswer(std::move(bytes));
}

Result<StatusAnswer> AskStatus(const ControlPlace& place) {
  FlatBufferBuilder b;
  const auto body = control::CreateStatusAsk(b).Union();
  TRY(auto bytes, Ask(place, b, control::AskBody::StatusAsk, body));
  return StatusAnswer::Read(std::move(bytes));
}

Result<RecordAnswer> AskRecord(const ControlPlace& place, uint64_t recorder) {
  FlatBufferBuilder b;
  const auto body = control::CreateRecordAsk(b, recorder).Union();
  TRY(auto bytes, Ask(place, b, control::AskBody::RecordAsk, body));
  return RecordAnswer::Read(std::move(bytes));
}

Status AskReload(const ControlPlace& place) {
  FlatBufferBuilder b;
  const auto body = control::CreateReloadAsk(b).Union();
  TRY(auto bytes, Ask(place, b, control::AskBody::ReloadAsk, body));
  return Done(bytes);
}

Status AskStop(const ControlPlace& place, uint32_t seconds) {
  FlatBufferBuilder b;
  const auto body = control::CreateStopAsk(b, seconds).Union();
  TRY(auto bytes, Ask(place, b, control::AskBody::StopAsk, body));
  return Done(bytes);
}

}  // namespace cuplex::tools
