// Lane: one driver stream of a context, what was given to it and how far it has come; and Mark, a place in
// it. Reactor's thread.
//
// Everything given to a lane has a position, counted from 1. A mark is a driver event recorded at a position:
// when the event has happened, all positions up to the mark's are done. Whatever waits for the device (a
// reply, a staging block, another stream, the measuring of time) waits for a mark.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cuda/driver_types.h"
#include "server/forecast.h"
#include "server/load_record.h"

namespace cuplex::server {

class Context;
struct Turn;

inline constexpr size_t kLanes = 8;

struct Mark {
  enum class State : uint8_t {
    kAhead,   // not given to the driver yet
    kPlaced,  // recorded in its lane
    kDone,    // passed, or never to be
  };
  Context* context = nullptr;  // nullptr once the context has ended
  CUevent event = nullptr;
  uint32_t references = 0;
  State state = State::kAhead;
  bool timed = false;  // time_ns is wanted
  uint8_t lane = 0;
  CUresult result = CUDA_SUCCESS;
  uint64_t position = 0;
  int64_t placed_ns = 0;  // by the server's clock
  int64_t time_ns = 0;    // on the device's timeline, once done
  std::vector<std::function<void(CUresult)>> then;
};

inline Mark* Share(Mark* mark) {
  ++mark->references;
  return mark;
}
void Drop(Mark* mark);

/// Calls back once, when the last of several things has come; with the first error there was.
struct Countdown {
  int left = 0;
  CUresult result = CUDA_SUCCESS;
  std::function<void(CUresult)> done;
};
void Arrive(Countdown* countdown, CUresult code);

/// A stretch of a lane's work whose time is measured from one mark to another.
struct Interval {
  Mark* start = nullptr;  // nullptr: it begins where the lane's last interval ended
  Mark* end = nullptr;
  Turn* turn = nullptr;
  uint32_t operations = 0;
  uint64_t foreseen_ns = 0;
  int64_t opened_ns = 0;  // by the server's clock: it cannot have begun earlier

  /// Launches of one kernel in one shape, one after the other.
  struct Part {
    Forecast* forecast = nullptr;
    LaunchShape shape;
    uint64_t blocks = 0;
  };
  std::array<Part, 4> parts;
  uint8_t part_count = 0;
  bool mixed = false;                                       // there is other work in it than `parts` says
  std::shared_ptr<std::vector<LoadRecord::Part>> recorded;  // while a load is recorded

  void Add(Forecast& forecast, const LaunchShape& shape, uint64_t blocks);
  /// It took `ns`.
  void Measured(uint64_t ns) const;
};

struct Lane {
  CUstream stream = nullptr;              // made when first used
  uint64_t submitted = 0;                 // positions given to the driver
  uint64_t completed = 0;                 // positions known to be done
  uint64_t marked = 0;                    // position of the last mark
  uint64_t blocking = 0;                  // last position of a stream that the legacy stream waits for
  uint64_t legacy = 0;                    // last position of the legacy stream
  std::array<uint64_t, kLanes> waited{};  // positions of other lanes that this one waits for already
  std::deque<Mark*> marks;                // placed and not done, oldest first
  bool open = false;                      // `interval` is being added to
  bool armed = false;                     // a host function behind the last position will wake the server
  Interval interval;
  std::deque<Interval> measuring;  // closed, end mark not done, oldest first
  int64_t last_end_ns = 0;         // on the device's timeline

  bool Idle() const { return completed == submitted; }
};

}  // namespace cuplex::server
