#include "tools/status_print.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace cuplex::tools {
namespace {

std::string_view Text(const flatbuffers::String* s) { return s ? s->string_view() : std::string_view(); }

/// The elements of a vector that may be absent, none of them null.
template <typename T>
std::vector<const T*> Each(const flatbuffers::Vector<flatbuffers::Offset<T>>* v) {
  std::vector<const T*> all;
  if (v) std::copy(v->begin(), v->end(), std::back_inserter(all));
  return all;
}

/// What goes to a terminal: control characters of a program's name must not act there.
std::string Plain(std::string_view text) {
  std::string plain(text);
  for (char& c : plain)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return plain;
}

std::string Mib(uint64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20)); }

std::string Duration(uint64_t ns) {
  const uint64_t seconds = ns / 1'000'000'000;
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86400, seconds % 86400 / 3600);
}

const control::TenantDevice* Find(const control::Status* status, std::string_view tenant, int device) {
  if (!status) return nullptr;
  for (const auto* t : Each(status->tenants()))
    if (Text(t->name()) == tenant)
      for (const auto* d : Each(t->devices()))
        if (d->device() == device) return d;
  return nullptr;
}

/// Seconds of the server's life between the two, 0 where they say nothing of each other.
double SecondsBetween(const control::Status& now, const control::Status* before) {
  if (!before || before->pid() != now.pid() || before->uptime_ns() >= now.uptime_ns()) return 0;
  return static_cast<double>(now.uptime_ns() - before->uptime_ns()) / 1e9;
}

std::string Rate(uint64_t now, uint64_t before, double seconds) {
  return now < before ? "-" : fmt::format("{:.0f}", static_cast<double>(now - before) / seconds);
}

}  // namespace

std::string PrintTable(const control::Status& now, const control::Status* before) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "cuplexd {}, pid {}, up {}, policy {}, driver {}\n", Plain(Text(now.server_version())),
                 now.pid(), Duration(now.uptime_ns()), Plain(Text(now.policy())), Plain(Text(now.driver())));
  for (const auto* d : Each(now.devices()))
    fmt::format_to(to, "device {}: {}, {} MiB\n", d->index(), Plain(Text(d->name())),
                   d->total_memory() >> 20);

  const double seconds = SecondsBetween(now, before);
  fmt::format_to(to, "\n{:<16} {:>6} {:>8} {:>19} {:>10} {:>6} {:>10} {:>10} {:>8} {:>8} {:>8}\n", "tenant",
                 "device", "sessions", "MiB used/limit", "device s", "time %", "launches", "launches/s",
                 "copies", "queue", "refusals");
  for (const auto* t : Each(now.tenants())) {
    const std::string name = Plain(Text(t->name()));
    const size_t sessions = t->sessions() ? t->sessions()->size() : 0;
    if (!t->devices() || t->devices()->size() == 0)
      fmt::format_to(to, "{:<16} {:>6} {:>8}\n", name, "-", sessions);
    for (const auto* d : Each(t->devices())) {
      const auto* then = seconds > 0 ? Find(before, Text(t->name()), d->device()) : nullptr;
      fmt::format_to(to, "{:<16} {:>6} {:>8} {:>19} {:>10.2f} {:>6} {:>10} {:>10} {:>8} {:>8} {:>8}\n", name,
                     d->device(), sessions, Mib(d->memory_used()) + " / " + Mib(d->memory_limit()),
                     static_cast<double>(d->device_ns()) / 1e9,
                     then ? Rate(d->device_ns() / 10'000'000, then->device_ns() / 10'000'000, seconds) : "-",
                     d->launches(), then ? Rate(d->launches(), then->launches(), seconds) : "-", d->copies(),
                     d->queue_depth(), t->refusals());
    }
  }

  bool headed = false;
  for (const auto* t : Each(now.tenants())) {
    for (const auto* s : Each(t->sessions())) {
      if (!headed)
        fmt::format_to(to, "\n{:<16} {:>8} {:>12} {:>8}  {}\n", "tenant", "pid", "MiB used", "queue",
                       "program");
      headed = true;
      fmt::format_to(to, "{:<16} {:>8} {:>12} {:>8}  {}\n", Plain(Text(t->name())), s->pid(),
                     Mib(s->memory_used()), s->queue_depth(), Plain(Text(s->program())));
    }
  }
  return out;
}

std::string PrintJsonString(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t n) { return static_cast<unsigned char>(text[n]); };
    const unsigned char c = byte(i);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i++];
    } else if (c < 0x20) {
      out += fmt::format("\\u{:04x}", c);
      ++i;
    } else if (c < 0x80) {
      out += text[i++];
    } else {
      const size_t length = c >= 0xf0 && c <= 0xf4 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
      bool good = length > 0 && c <= 0xf4 && i + length <= text.size();
      for (size_t n = 1; good && n < length; ++n) good = (byte(i + n) & 0xc0) == 0x80;
      // Longer than needed, surrogates, and beyond U+10FFFF.
      if (good && length > 2) {
        const unsigned char second = byte(i + 1);
        good = !(c == 0xe0 && second < 0xa0) && !(c == 0xed && second > 0x9f) &&
               !(c == 0xf0 && second < 0x90) && !(c == 0xf4 && second > 0x8f);
      }
      out += good ? text.substr(i, length) : std::string_view("\xef\xbf\xbd");
      i += good ? length : 1;
    }
  }
  return out + '"';
}

namespace {

/// [f(element), ...]
template <typename T, typename F>
std::string List(const flatbuffers::Vector<flatbuffers::Offset<T>>* elements, F&& f) {
  std::string out = "[";
  for (const T* e : Each(elements)) {
    if (out.size() > 1) out += ", ";
    out += f(*e);
  }
  return out + "]";
}

std::string Json(const control::DeviceStatus& d) {
  return fmt::format(R"({{"index": {}, "name": {}, "total_memory": {}}})", d.index(),
                     PrintJsonString(Text(d.name())), d.total_memory());
}

std::string Json(const control::Session& s) {
  return fmt::format(R"({{"pid": {}, "program": {}, "memory_used": {}, "queue_depth": {}}})", s.pid(),
                     PrintJsonString(Text(s.program())), s.memory_used(), s.queue_depth());
}

std::string Json(const control::TenantDevice& d) {
  return fmt::format(
      R"({{"device": {}, "memory_used": {}, "memory_limit": {}, "device_ns": {}, "launches": {}, )"
      R"("copies": {}, "copied_bytes": {}, "queue_depth": {}}})",
      d.device(), d.memory_used(), d.memory_limit(), d.device_ns(), d.launches(), d.copies(),
      d.copied_bytes(), d.queue_depth());
}

std::string Json(const control::Tenant& t) {
  return fmt::format(R"({{"name": {}, "refusals": {}, "sessions": {}, "devices": {}}})",
                     PrintJsonString(Text(t.name())), t.refusals(),
                     List(t.sessions(), [](auto& s) { return Json(s); }),
                     List(t.devices(), [](auto& d) { return Json(d); }));
}

}  // namespace

std::string PrintJson(const control::Status& status) {
  return fmt::format(R"({{"server_version": {}, "pid": {}, "driver": {}, "policy": {}, "uptime_ns": {}, )"
                     R"("devices": {}, "tenants": {}}})"
                     "\n",
                     PrintJsonString(Text(status.server_version())), status.pid(),
                     PrintJsonString(Text(status.driver())), PrintJsonString(Text(status.policy())),
                     status.uptime_ns(), List(status.devices(), [](auto& d) { return Json(d); }),
                     List(status.tenants(), [](auto& t) { return Json(t); }));
}

}  // namespace cuplex::tools
