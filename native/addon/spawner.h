// The thread of one environment that starts launchers. Starting a process makes its caller wait until the new program is
// loaded, which the event loop must not; and a program that keeps libuv's pool busy must not keep its sandboxes waiting.
#pragma once

#include <napi.h>
#include <uv.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "spawn.h"

namespace ringfence {

struct LaunchJob {
  LaunchJob(Napi::Env env) : launched(Napi::Promise::Deferred::New(env)) {}

  std::string launcher;
  std::vector<uint8_t> plan;
  bool with_stdin = false;
  Napi::FunctionReference on_record;
  Napi::FunctionReference on_exit;
  Napi::Promise::Deferred launched;

  // What the thread makes of it.
  uint64_t started_at = 0; // uv_hrtime()
  bool started = false;
  Spawned spawned;
  Failure failure;
};

class Spawner {
 public:
  using Job = std::unique_ptr<LaunchJob>;
  // On the environment's own thread, in a callback scope.
  using OnDone = void (*)(Napi::Env env, LaunchJob* job);

  // The environment's one, made at the first call. Null with *failure filled in when there can be none.
  static Spawner* Of(Napi::Env env, OnDone on_done, Failure* failure);

  void Add(Job job);

 private:
  Spawner(Napi::Env env, OnDone on_done);
  ~Spawner();

  int Start();
  void Work();
  void Deliver();
  void Stop();

  Napi::Env env_;
  const OnDone on_done_;
  Napi::AsyncContext context_;
  napi_async_cleanup_hook_handle cleanup_hook_ = nullptr;
  uv_async_t done_;
  size_t outstanding_ = 0; // keeps the event loop alive
  uv_thread_t thread_;
  uv_mutex_t mutex_; // for what follows
  uv_cond_t more_;
  std::list<Job> waiting_;
  std::list<Job> finished_;
  bool stopping_ = false;
};

} // namespace ringfence
