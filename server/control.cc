#include "server/control.h"

#include <algorithm>

#include <unistd.h>

#include "protocol/control_generated.h"
#include "protocol/frame.h"

#ifndef CUPLEX_VERSION
#define CUPLEX_VERSION "0"
#endif

namespace cuplex::server {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint32_t kMostStopSeconds = 600;
constexpr size_t kMostRecorded = 20'000;  // rows of a message

std::vector<std::byte> Reply(FlatBufferBuilder& builder, control::ReplyBody kind, Offset<void> body) {
  builder.Finish(control::CreateReply(builder, kind, body));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

std::vector<std::byte> Failed(const std::string& sentence) {
  FlatBufferBuilder builder;
  return Reply(builder, control::ReplyBody::Failure,
               control::CreateFailureDirect(builder, sentence.c_str()).Union());
}

std::vector<std::byte> Done() {
  FlatBufferBuilder builder;
  return Reply(builder, control::ReplyBody::Done, control::CreateDone(builder).Union());
}

}  // namespace

std::vector<std::byte> Control::Answer(std::span<const std::byte> bytes) {
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), 16, 64);
  if (bytes.size() < 8 || !verifier.VerifyBuffer<control::Ask>(nullptr))
    return Failed(fmt::format("The {} bytes that came are no ask of a cuplex tool.", bytes.size()));
  const auto* ask = flatbuffers::GetRoot<control::Ask>(bytes.data());
  if (ask->protocol() != kProtocolVersion)
    return Failed(fmt::format("The ask has protocol version {}, this server ({}) speaks version {}.",
                              ask->protocol(), CUPLEX_VERSION, kProtocolVersion));
  switch (ask->body_type()) {
    case control::AskBody::StatusAsk:
      return AnswerStatus();
    case control::AskBody::ReloadAsk: {
      Status status = reload_();
      return status.ok() ? Done() : Failed(status.error().sentence);
    }
    case control::AskBody::StopAsk:
      stop_(std::min(ask->body_as_StopAsk()->seconds(), kMostStopSeconds));
      return Done();
    case control::AskBody::RecordAsk:
      return AnswerRecord(ask->body_as_RecordAsk()->recorder());
    default:
      return Failed("The ask is of a kind that this server does not know.");
  }
}

std::vector<std::byte> Control::AnswerRecord(uint64_t recorder) {
  auto taken = house_.load_record.Take(recorder, kMostRecorded, house_.clock.NowNs());
  if (!taken.ok()) return Failed(taken.error().sentence);
  FlatBufferBuilder builder(taken->rows.size() * sizeof(control::RecordedWork) + 1024);
  std::vector<control::RecordedWork> work;
  work.reserve(taken->rows.size());
  for (const LoadRecord::Row& row : taken->rows)
    work.emplace_back(static_cast<uint64_t>(row.at_ns), row.device_ns, house_.devices[row.device].index,
                      row.tenant, row.sliceable);
  const auto names = builder.CreateVectorOfStrings(taken->tenants);
  const auto rows = builder.CreateVectorOfStructs(work);
  return Reply(builder, control::ReplyBody::Record,
               control::CreateRecord(builder, names, rows, taken->lost, taken->more).Union());
}

std::vector<std::byte> Control::AnswerStatus() {
  FlatBufferBuilder builder;
  std::vector<Offset<control::DeviceStatus>> devices;
  for (const Device& device : house_.devices)
    devices.push_back(
        control::CreateDeviceStatusDirect(builder, device.index, device.name.c_str(), device.memory_bytes));
  std::vector<Offset<control::Tenant>> tenants;
  house_.ledger.ForEach([&](Tenant& tenant) {
    std::vector<Offset<control::Session>> sessions;
    for (Session* session : tenant.sessions)
      sessions.push_back(
          control::CreateSessionDirect(builder, session->client().peer.pid, session->client().program.c_str(),
                                       session->memory_used(), static_cast<uint32_t>(session->queued())));
    std::vector<Offset<control::TenantDevice>> on;
    for (size_t d : tenant.sees) {
      Holding& holding = *tenant.holdings[d];
      const metrics::TenantDeviceCounters& counters = holding.counters();
      uint64_t copies = 0, copied = 0;
      for (const auto& count : counters.copies) copies += count.value();
      for (const auto& count : counters.copied_bytes) copied += count.value();
      on.push_back(control::CreateTenantDevice(
          builder, house_.devices[d].index, holding.used(), holding.limit(), counters.device_ns.value(),
          counters.launches.value(), copies, copied, static_cast<uint32_t>(house_.Queued(tenant, d))));
    }
    uint64_t refusals = 0;
    for (const auto& count : tenant.counters->refusals) refusals += count.value();
    tenants.push_back(control::CreateTenantDirect(builder, tenant.name.c_str(), &sessions, refusals, &on));
  });
  auto status = control::CreateStatusDirect(
      builder, CUPLEX_VERSION, getpid(), described_.driver.c_str(), described_.policy.c_str(),
      static_cast<uint64_t>(house_.clock.NowNs() - described_.started_ns), &devices, &tenants);
  return Reply(builder, control::ReplyBody::Status, status.Union());
}

}  // namespace cuplex::server
