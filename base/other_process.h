// Order between threads of this process that goes through another one, for the thread sanitizer, which cannot
// see it: what a thread did before it handed work over has happened before what a thread does after it heard
// that work is done. Nothing in other builds. Any thread.
#pragma once

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#define CUPLEX_SEES_THREADS 1
#endif
#endif

namespace cuplex {

#ifdef CUPLEX_SEES_THREADS
inline char between_processes;
inline void BeforeHandingOver() { __tsan_release(&between_processes); }
inline void AfterHearingBack() { __tsan_acquire(&between_processes); }
#else
inline void BeforeHandingOver() {}
inline void AfterHearingBack() {}
#endif

}  // namespace cuplex
