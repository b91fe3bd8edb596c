// The half of Context that knows how far its lanes have come, and when: marks, and the intervals between
// them.
#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

#include "server/context.h"
#include "server/queue.h"

namespace cuplex::server {

void Drop(Mark* mark) {
  assert(mark->references > 0);
  if (--mark->references) return;
  if (mark->context) {
    mark->context->free_marks_.push_back(mark);
  } else {
    delete mark;
  }
}

void Interval::Add(Forecast& forecast, const LaunchShape& shape, uint64_t blocks) {
  for (Part& part : std::span(parts).first(part_count)) {
    if (part.forecast != &forecast || part.shape != shape) continue;
    part.blocks += blocks;
    return;
  }
  if (part_count == parts.size()) {
    mixed = true;
    return;
  }
  parts[part_count++] = {&forecast, shape, blocks};
}

void Interval::Measured(uint64_t ns) const {
  if (part_count == 1 && !mixed) {
    parts[0].forecast->Measured(parts[0].shape, parts[0].blocks, ns);
  } else if (foreseen_ns) {
    const double ratio = static_cast<double>(ns) / static_cast<double>(foreseen_ns);
    for (const Part& part : std::span(parts).first(part_count))
      part.forecast->MeasuredTogether(part.shape, ratio);
  }
}

Mark* Context::NewMark() {
  if (free_marks_.empty()) {
    free_marks_.push_back(new Mark);
    free_marks_.back()->context = this;
    marks_.push_back(free_marks_.back());
  }
  Mark* mark = free_marks_.back();
  free_marks_.pop_back();
  mark->references = 1;
  mark->state = Mark::State::kAhead;
  mark->timed = false;
  mark->result = CUDA_SUCCESS;
  mark->position = 0;
  mark->then.clear();
  return mark;
}

CUresult Context::Place(Mark* mark, Lane& lane) {
  CUresult code = OpenLane(lane);
  if (!code && !mark->event) code = cu_.cuEventCreate(&mark->event, CU_EVENT_DEFAULT);
  const int64_t before = clock_.NowNs();
  if (!code) code = cu_.cuEventRecord(mark->event, lane.stream);
  if (code) return code;
  queue_.Busy(*this);
  mark->state = Mark::State::kPlaced;
  mark->placed_ns = before;
  mark->lane = static_cast<uint8_t>(&lane - lanes_.data());
  mark->position = lane.marked = ++lane.submitted;
  lane.armed = false;
  lane.marks.push_back(Share(mark));
  if (lane.open) {
    lane.open = false;
    mark->timed = true;
    lane.interval.end = Share(mark);
    lane.measuring.push_back(lane.interval);
  }
  return CUDA_SUCCESS;
}

Mark* Context::MarkEnd(Lane& lane) {
  if (!lane.marks.empty() && lane.marked == lane.submitted && !lane.open) return Share(lane.marks.back());
  Mark* mark = NewMark();
  const CUresult code = Place(mark, lane);
  if (!code) return mark;
  Drop(mark);
  Fail(code);  // without marks nothing can be waited for any more
  return nullptr;
}

void Context::OpenInterval(Lane& lane, Turn* turn) {
  if (lane.open && lane.interval.turn == turn) return;
  if (lane.open) {
    Mark* mark = MarkEnd(lane);
    if (!mark) return;
    Drop(mark);
  }
  Interval next;
  next.turn = turn;
  next.opened_ns = clock_.NowNs();
  if (lane.Idle()) {
    Mark* start = NewMark();
    start->timed = true;
    if (Place(start, lane)) {
      Drop(start);
    } else {
      next.start = start;
    }
  }
  lane.interval = next;
  lane.open = true;
  queue_.Began(turn);
}

int64_t Context::TimeOf(Mark* mark) {
  float ms = 0;
  const int64_t now = clock_.NowNs();
  if (cu_.cuEventElapsedTime_v2(&ms, anchor_, mark->event) &&
      cu_.cuEventElapsedTime(&ms, anchor_, mark->event))
    return now;
  int64_t at = anchor_ns_ + static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  // When the anchor happened is known only as well as a busy device let it be seen; and clocks drift. But a
  // mark comes after it was placed and before it was found, so each puts right what is wrong by more.
  const int64_t true_at = std::clamp(at, mark->placed_ns, std::max(mark->placed_ns, now));
  anchor_ns_ += true_at - at;
  at = true_at;
  if (ms > 1000) {  // a float's 24 bits hold a second to 60 ns
    if (anchor_mark_) Drop(anchor_mark_);
    anchor_mark_ = Share(mark);
    anchor_ = mark->event;
    anchor_ns_ = at;
  }
  return at;
}

void Context::Measure(Lane& lane) {
  while (!lane.measuring.empty() && lane.measuring.front().end->state == Mark::State::kDone) {
    Interval interval = lane.measuring.front();
    lane.measuring.pop_front();
    const int64_t end = interval.end->time_ns;
    int64_t begin = std::max(lane.last_end_ns, interval.start ? interval.start->time_ns : interval.opened_ns);
    begin = std::min(begin, end);
    lane.last_end_ns = std::max(lane.last_end_ns, end);
    interval.Measured(static_cast<uint64_t>(end - begin));
    if (interval.recorded) queue_.Record(*this, *interval.recorded, end - begin);
    if (interval.start) Drop(interval.start);
    Drop(interval.end);
    queue_.Ended(interval.turn, interval.foreseen_ns, begin, end);
  }
}

void Context::Finish(Mark* mark, CUresult code) {
  mark->state = Mark::State::kDone;
  mark->result = code;
  if (mark->timed) mark->time_ns = code ? clock_.NowNs() : TimeOf(mark);
  Measure(lanes_[mark->lane]);
  // What is called may wait for the mark again, or drop it.
  Share(mark);
  auto then = std::move(mark->then);
  mark->then.clear();
  for (auto& each : then) each(code);
  if (mark->then.empty()) {
    then.clear();
    mark->then.swap(then);  // its capacity is used again
  }
  Drop(mark);
}

bool Context::Poll() {
  bool progress = false;
  for (Lane& lane : lanes_) {
    while (!lane.marks.empty() && !fault_) {
      if (!progress)
        if (CUresult code = Enter()) {
          Fail(code);
          return true;
        }
      Mark* mark = lane.marks.front();
      const CUresult code = cu_.cuEventQuery(mark->event);
      if (code == CUDA_ERROR_NOT_READY) break;
      progress = true;
      if (code) {
        Fail(code);
        break;
      }
      lane.marks.pop_front();
      lane.completed = mark->position;
      Finish(mark, CUDA_SUCCESS);
      Drop(mark);
    }
  }
  return progress;
}

void Context::CloseIntervals() {
  for (Lane& lane : lanes_) {
    if (!lane.open || fault_) continue;
    if (CUresult code = Enter()) return Fail(code);
    if (Mark* mark = MarkEnd(lane)) Drop(mark);
  }
}

void Context::AbandonIntervals() {
  const int64_t now = clock_.NowNs();
  for (Lane& lane : lanes_) {
    if (lane.open) {
      lane.open = false;
      lane.interval.end = NewMark();
      lane.measuring.push_back(lane.interval);
    }
    while (!lane.measuring.empty()) {
      Interval interval = lane.measuring.front();
      lane.measuring.pop_front();
      int64_t begin = std::max(lane.last_end_ns, interval.start && interval.start->state == Mark::State::kDone
                                                     ? interval.start->time_ns
                                                     : interval.opened_ns);
      begin = std::min(begin, now);
      if (interval.start) Drop(interval.start);
      Drop(interval.end);
      lane.last_end_ns = now;
      if (interval.recorded) queue_.Record(*this, *interval.recorded, now - begin);
      queue_.Ended(interval.turn, interval.foreseen_ns, begin, now);
    }
  }
}

int64_t Context::RunningSince(const Turn& turn) const {
  int64_t since = INT64_MAX;
  for (const Lane& lane : lanes_) {
    // The oldest interval that has not ended is the one that runs, if its start has come.
    const Interval* front = !lane.measuring.empty() ? &lane.measuring.front()
                            : lane.open             ? &lane.interval
                                                    : nullptr;
    if (!front || front->turn != &turn) continue;
    if (!front->start) {
      since = std::min(since, std::max(lane.last_end_ns, front->opened_ns));
    } else if (front->start->state == Mark::State::kDone) {
      since = std::min(since, std::max(lane.last_end_ns, front->start->time_ns));
    }
  }
  return since;
}

bool Context::InFlight() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return !l.marks.empty() || l.open; });
}

void Context::Arm(CUhostFn wake, void* data) {
  for (Lane& lane : lanes_) {
    if (lane.Idle() || lane.armed || fault_) continue;
    if (Enter()) return;
    // Where this fails the server looks by itself after a while.
    lane.armed = cu_.cuLaunchHostFunc(lane.stream, wake, data) == CUDA_SUCCESS;
  }
}

}  // namespace cuplex::server
