// One launcher on the event loop of its environment: records in, exit out.
#pragma once

#include <napi.h>
#include <uv.h>

#include "control.h"
#include "spawn.h"

namespace ringfence {

// Lives until the launcher is reaped, its loop handles are closed and no JavaScript function refers to it. All of it
// happens on the thread of its environment, so the count needs no atomics.
class Run {
 public:
  // Null with *failure filled in when the loop takes no more handles; the launcher is dead and reaped then.
  static Run* Start(Napi::Env env, Spawned* spawned, Napi::Function on_record, Napi::Function on_exit,
                    Failure* failure);

  void Retain() { references_++; }
  void Release();

  bool Send(const uint8_t* bytes, size_t size);
  void HangUp();
  void Kill();

  struct Streams {
    Fd in;
    Fd out;
    Fd error;
  };
  // The guest's, once: none of them is open afterwards. What is never taken is closed with the run.
  Streams TakeStreams();

 private:
  Run(Napi::Env env, Spawned* spawned);
  ~Run() = default;

  int Watch(uv_loop_t* loop);
  void OnControl(int status);
  void OnExit();
  bool Drain(int most);
  void Deliver(Message* message);
  void CallBack(const Napi::FunctionReference& callback, size_t count, const napi_value* arguments);
  void Finish(const ExitStatus& status);
  void StopWatching();
  void CloseHandle(uv_handle_t* handle);
  void OnHandleClosed();
  void Abandon();
  void OnOutOfPatience();

  Napi::Env env_;
  Fd control_;
  Fd pidfd_;
  Streams streams_;
  Napi::FunctionReference on_record_;
  Napi::FunctionReference on_exit_;
  napi_async_context context_ = nullptr;
  napi_async_cleanup_hook_handle cleanup_hook_ = nullptr;
  uv_poll_t control_poll_;
  uv_poll_t exit_poll_;
  uv_timer_t patience_;
  int references_ = 1; // the watch itself
  int open_handles_ = 0;
  bool commands_ended_ = false;
  bool watching_ = false;
  bool control_watched_ = false;
  bool exit_watched_ = false;
  bool abandoned_ = false;
  bool killed_for_good_ = false;
};

// A counted reference, for functions that JavaScript may keep longer than the run.
class RunReference {
 public:
  explicit RunReference(Run* run) : run_(run) { run_->Retain(); }
  RunReference(const RunReference& other) : run_(other.run_) { run_->Retain(); }
  RunReference& operator=(const RunReference&) = delete;
  ~RunReference() { run_->Release(); }
  Run* operator->() const { return run_; }

 private:
  Run* run_;
};

} // namespace ringfence
