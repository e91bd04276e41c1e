#include "run.h"

#include <utility>

namespace ringfence {
namespace {

// How long an environment that is torn down waits for the launcher to clean up, and then for the kernel to end it.
constexpr uint64_t kPatienceMs = 5000;
constexpr uint64_t kPatienceAfterKillMs = 2000;
// Records handled at one wake-up; the loop comes back for the rest.
constexpr int kRecordsAtOnce = 32;
constexpr int kNoLimit = -1;

} // namespace

Run::Run(Napi::Env env, Spawned* spawned)
    : env_(env),
      control_(std::move(spawned->control)),
      pidfd_(std::move(spawned->pidfd)),
      streams_{std::move(spawned->guest_stdin), std::move(spawned->guest_stdout), std::move(spawned->guest_stderr)} {}

Run* Run::Start(Napi::Env env, Spawned* spawned, Napi::Function on_record, Napi::Function on_exit,
                Failure* failure) {
  uv_loop_t* loop = nullptr;
  napi_get_uv_event_loop(env, &loop);
  Run* run = new Run(env, spawned);
  const int error = run->Watch(loop);
  if (error != 0) {
    *failure = {"uv_poll_start", -error};
    run->Kill();
    ReapSoon(run->pidfd_);
    run->StopWatching();
    return nullptr;
  }
  run->on_record_ = Napi::Persistent(on_record);
  run->on_exit_ = Napi::Persistent(on_exit);
  const Napi::String name = Napi::String::New(env, "RINGFENCELAUNCH");
  napi_async_init(env, nullptr, name, &run->context_);
  napi_add_async_cleanup_hook(
      env, [](napi_async_cleanup_hook_handle, void* data) { static_cast<Run*>(data)->Abandon(); }, run,
      &run->cleanup_hook_);
  return run;
}

void Run::Release() {
  if (--references_ == 0) delete this;
}

int Run::Watch(uv_loop_t* loop) {
  watching_ = true;
  uv_timer_init(loop, &patience_);
  patience_.data = this;
  open_handles_++;
  int error = uv_poll_init(loop, &control_poll_, control_.get());
  if (error != 0) return error;
  control_poll_.data = this;
  control_watched_ = true;
  open_handles_++;
  error = uv_poll_start(&control_poll_, UV_READABLE, [](uv_poll_t* handle, int status, int) {
    static_cast<Run*>(handle->data)->OnControl(status);
  });
  if (error != 0 || !pidfd_.valid()) return error;
  error = uv_poll_init(loop, &exit_poll_, pidfd_.get());
  if (error != 0) return error;
  exit_poll_.data = this;
  exit_watched_ = true;
  open_handles_++;
  return uv_poll_start(&exit_poll_, UV_READABLE,
                       [](uv_poll_t* handle, int, int) { static_cast<Run*>(handle->data)->OnExit(); });
}

bool Run::Send(const uint8_t* bytes, size_t size) {
  return !commands_ended_ && SendCommand(control_, bytes, size);
}

void Run::HangUp() {
  if (commands_ended_) return;
  commands_ended_ = true;
  EndCommands(control_);
}

void Run::Kill() { KillByPidfd(pidfd_); }

Run::Streams Run::TakeStreams() { return std::move(streams_); }

// A negative status stands for POLLERR: the launcher is gone with commands unread. libuv has stopped the handle then,
// so all that is queued must be taken now.
void Run::OnControl(int status) {
  const Napi::HandleScope scope(env_);
  if (!Drain(status < 0 ? kNoLimit : kRecordsAtOnce)) return;
  uv_poll_stop(&control_poll_); // an end of file stays readable for ever
  if (!pidfd_.valid()) Finish(ExitStatus());
}

void Run::OnExit() {
  ExitStatus status;
  if (!Reap(pidfd_, &status)) return;
  const Napi::HandleScope scope(env_);
  Drain(kNoLimit);
  Finish(status);
}

// True when the launcher will say no more.
bool Run::Drain(int most) {
  Message message;
  for (int count = 0; count != most; count++) {
    const Received received = Receive(control_, &message);
    if (received == Received::kEnd) return true;
    if (received == Received::kNothingYet) return false;
    if (!abandoned_) Deliver(&message);
  }
  return false;
}

void Run::Deliver(Message* message) {
  const Napi::HandleScope scope(env_);
  const Napi::Buffer<uint8_t> record = Napi::Buffer<uint8_t>::Copy(env_, message->bytes, message->size);
  const Napi::Array descriptors = Napi::Array::New(env_, message->descriptors.size());
  if (record.IsEmpty() || descriptors.IsEmpty()) return; // a worker that is being terminated
  for (size_t index = 0; index < message->descriptors.size(); index++) {
    descriptors.Set(static_cast<uint32_t>(index), Napi::Number::New(env_, message->descriptors[index].get()));
  }
  // From here on JavaScript owns them.
  for (Fd& descriptor : message->descriptors) descriptor.release();
  const napi_value arguments[] = {record, descriptors};
  CallBack(on_record_, 2, arguments);
}

void Run::CallBack(const Napi::FunctionReference& callback, size_t count, const napi_value* arguments) {
  const napi_value receiver = env_.Global(); // must be an object
  const napi_status status =
      napi_make_callback(env_, context_, receiver, callback.Value(), count, arguments, nullptr);
  if (status != napi_pending_exception) return;
  napi_value error = nullptr;
  // An exception of the caller's own function is an uncaught exception of the host, as from any event handler.
  if (napi_get_and_clear_last_exception(env_, &error) == napi_ok) napi_fatal_exception(env_, error);
}

// Everything that counts in the kernel is given back before JavaScript hears of the exit.
void Run::Finish(const ExitStatus& status) {
  StopWatching();
  if (abandoned_) return;
  const bool exited = status.exit_code >= 0;
  const bool signalled = status.signal != 0;
  const napi_value arguments[] = {
      exited ? Napi::Value(Napi::Number::New(env_, status.exit_code)) : env_.Null(),
      signalled ? Napi::Value(Napi::Number::New(env_, status.signal)) : env_.Null(),
  };
  CallBack(on_exit_, 2, arguments);
}

// libuv allows a descriptor to be closed as soon as its handle is being closed.
void Run::StopWatching() {
  if (!watching_) return;
  watching_ = false;
  commands_ended_ = true;
  CloseHandle(reinterpret_cast<uv_handle_t*>(&patience_));
  if (control_watched_) CloseHandle(reinterpret_cast<uv_handle_t*>(&control_poll_));
  if (exit_watched_) CloseHandle(reinterpret_cast<uv_handle_t*>(&exit_poll_));
  control_.reset();
  pidfd_.reset();
}

void Run::CloseHandle(uv_handle_t* handle) {
  uv_close(handle, [](uv_handle_t* closed) { static_cast<Run*>(closed->data)->OnHandleClosed(); });
}

void Run::OnHandleClosed() {
  if (--open_handles_ > 0) return;
  const Napi::HandleScope scope(env_);
  on_record_.Reset();
  on_exit_.Reset();
  if (context_ != nullptr) napi_async_destroy(env_, context_);
  if (cleanup_hook_ != nullptr) napi_remove_async_cleanup_hook(cleanup_hook_);
  Release();
}

// The environment (a worker, the process) ends while the launcher runs. No JavaScript can be called any more; the loop
// is kept turning until the hook is removed.
void Run::Abandon() {
  abandoned_ = true;
  TakeStreams(); // nobody else will
  HangUp();
  if (!watching_) return;
  if (!pidfd_.valid()) {
    StopWatching();
    return;
  }
  uv_timer_start(
      &patience_, [](uv_timer_t* timer) { static_cast<Run*>(timer->data)->OnOutOfPatience(); }, kPatienceMs, 0);
}

void Run::OnOutOfPatience() {
  if (killed_for_good_) {
    StopWatching();
    return;
  }
  killed_for_good_ = true;
  Kill();
  uv_timer_start(
      &patience_, [](uv_timer_t* timer) { static_cast<Run*>(timer->data)->OnOutOfPatience(); }, kPatienceAfterKillMs, 0);
}

} // namespace ringfence
