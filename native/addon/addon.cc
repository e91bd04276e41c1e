// The addon's exports: see src/launcher/native.ts for the shapes.
#include <napi.h>
#include <uv.h>

#include <string>
#include <utility>
#include <vector>

#include "packets.h"
#include "place.h"
#include "run.h"
#include "spawn.h"

namespace ringfence {
namespace {

constexpr size_t kLongestCommand = 64;

// In Node's own form: errno negative, code by name.
Napi::Error ErrorOf(Napi::Env env, const Failure& failure, const std::string& path) {
  const int number = -failure.error;
  const std::string code = uv_err_name(number);
  const Napi::Error error =
      Napi::Error::New(env, code + ": " + uv_strerror(number) + ", " + failure.syscall + " '" + path + "'");
  Napi::Object fields = error.Value();
  fields.Set("code", code);
  fields.Set("errno", number);
  fields.Set("syscall", failure.syscall);
  fields.Set("path", path);
  return error;
}

Napi::Value Send(const Napi::CallbackInfo& info, const RunReference& run) {
  if (!info[0].IsTypedArray()) return Napi::Boolean::New(info.Env(), false);
  const Napi::TypedArray array = info[0].As<Napi::TypedArray>();
  if (array.TypedArrayType() != napi_uint8_array || array.ByteLength() > kLongestCommand) {
    return Napi::Boolean::New(info.Env(), false);
  }
  const Napi::Uint8Array command = array.As<Napi::Uint8Array>();
  return Napi::Boolean::New(info.Env(), run->Send(command.Data(), command.ByteLength()));
}

// False when the environment is being stopped (a worker that is terminated): nothing can be handed to JavaScript then,
// and the descriptors stay with `spawned`, which closes them.
bool Describe(Napi::Env env, Run* run, Spawned* spawned, Napi::Object launch) {
  const RunReference reference(run);
  const bool complete =
      launch.Set("pid", spawned->pid) &&
      (!spawned->guest_stdin.valid() || launch.Set("stdin", spawned->guest_stdin.get())) &&
      launch.Set("stdout", spawned->guest_stdout.get()) && launch.Set("stderr", spawned->guest_stderr.get()) &&
      launch.Set("send", Napi::Function::New(
                             env, [reference](const Napi::CallbackInfo& info) { return Send(info, reference); }, "send")) &&
      launch.Set("hangUp",
                 Napi::Function::New(env, [reference](const Napi::CallbackInfo&) { reference->HangUp(); }, "hangUp")) &&
      launch.Set("kill",
                 Napi::Function::New(env, [reference](const Napi::CallbackInfo&) { reference->Kill(); }, "kill"));
  if (!complete) return false;
  spawned->guest_stdin.release();
  spawned->guest_stdout.release();
  spawned->guest_stderr.release();
  return true;
}

bool IsBytes(const Napi::Value& value) {
  return value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_uint8_array;
}

// Starting a process makes its caller wait until the launcher's program is loaded: a thread of the pool waits, not the
// event loop.
class LaunchWork : public Napi::AsyncWorker {
 public:
  LaunchWork(Napi::Env env, std::string launcher, const Napi::Uint8Array& plan, bool with_stdin)
      : AsyncWorker(env, "RINGFENCELAUNCH"),
        launcher_(std::move(launcher)),
        plan_(plan.Data(), plan.Data() + plan.ByteLength()),
        with_stdin_(with_stdin),
        launched_(Napi::Promise::Deferred::New(env)) {}

  Napi::Promise Start(Napi::Function on_record, Napi::Function on_exit) {
    on_record_ = Napi::Persistent(on_record);
    on_exit_ = Napi::Persistent(on_exit);
    const Napi::Promise promise = launched_.Promise();
    Queue(); // from here on this is the pool's
    return promise;
  }

 private:
  void Execute() override {
    started_at_ = uv_hrtime();
    started_ = Spawn(launcher_.c_str(), plan_.data(), plan_.size(), &spawned_, &failure_);
    if (!with_stdin_) spawned_.guest_stdin.reset();
  }

  void OnOK() override {
    const Napi::Env env = Env();
    Run* run = started_ ? Run::Start(env, &spawned_, on_record_.Value(), on_exit_.Value(), &failure_) : nullptr;
    if (run == nullptr) {
      launched_.Reject(ErrorOf(env, failure_, launcher_).Value());
      return;
    }
    const Napi::Object launch = Napi::Object::New(env);
    const double age_ms = static_cast<double>(uv_hrtime() - started_at_) / 1e6;
    if (launch.Set("ageMs", age_ms) && Describe(env, run, &spawned_, launch)) {
      launched_.Resolve(launch);
    } else {
      run->HangUp();
    }
  }

  const std::string launcher_;
  const std::vector<uint8_t> plan_;
  const bool with_stdin_;
  const Napi::Promise::Deferred launched_;
  Napi::FunctionReference on_record_;
  Napi::FunctionReference on_exit_;
  uint64_t started_at_ = 0;
  bool started_ = false;
  Spawned spawned_;
  Failure failure_;
};

Napi::Value Launch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object request = info[0].IsObject() ? info[0].As<Napi::Object>() : Napi::Object::New(env);
  const Napi::Value launcher = request.Get("launcher");
  const Napi::Value plan = request.Get("plan");
  const Napi::Value with_stdin = request.Get("withStdin");
  const Napi::Value on_record = request.Get("onRecord");
  const Napi::Value on_exit = request.Get("onExit");
  if (env.IsExceptionPending()) return Napi::Value();
  if (!launcher.IsString() || !IsBytes(plan) || !with_stdin.IsBoolean() || !on_record.IsFunction() || !on_exit.IsFunction()) {
    Napi::TypeError::New(env, "launch() takes { launcher: string, plan: Uint8Array, withStdin: boolean, onRecord, onExit: functions }")
        .ThrowAsJavaScriptException();
    return Napi::Value();
  }
  LaunchWork* work = new LaunchWork(env, launcher.As<Napi::String>(), plan.As<Napi::Uint8Array>(), with_stdin.As<Napi::Boolean>());
  return work->Start(on_record.As<Napi::Function>(), on_exit.As<Napi::Function>());
}

// The kernel lets a move wait for a grace period.
class PlaceWork : public Napi::AsyncWorker {
 public:
  PlaceWork(Napi::Env env, std::string procs, std::string place)
      : AsyncWorker(env, "RINGFENCEPLACE"), procs_(std::move(procs)), place_(std::move(place)), done_(Napi::Promise::Deferred::New(env)) {}

  Napi::Promise Start() {
    const Napi::Promise promise = done_.Promise();
    Queue();
    return promise;
  }

 private:
  void Execute() override { moved_ = MoveToOwnPlace(procs_.c_str(), place_.c_str()); }
  void OnOK() override { done_.Resolve(Napi::Boolean::New(Env(), moved_)); }

  const std::string procs_;
  const std::string place_;
  const Napi::Promise::Deferred done_;
  bool moved_ = false;
};

Napi::Value KeepPlace(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object request = info[0].IsObject() ? info[0].As<Napi::Object>() : Napi::Object::New(env);
  const Napi::Value procs = request.Get("procs");
  const Napi::Value place = request.Get("place");
  if (env.IsExceptionPending()) return Napi::Value();
  if (!procs.IsString() || !place.IsString()) {
    Napi::TypeError::New(env, "keepPlace() takes { procs: string, place: string }").ThrowAsJavaScriptException();
    return Napi::Value();
  }
  return (new PlaceWork(env, procs.As<Napi::String>(), place.As<Napi::String>()))->Start();
}

Napi::Value WatchPackets(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object request = info[0].IsObject() ? info[0].As<Napi::Object>() : Napi::Object::New(env);
  const Napi::Value fd = request.Get("fd");
  const Napi::Value on_packet = request.Get("onPacket");
  if (env.IsExceptionPending()) return Napi::Value();
  if (!fd.IsNumber() || !on_packet.IsFunction()) {
    Napi::TypeError::New(env, "watchPackets() takes { fd: number, onPacket: function }").ThrowAsJavaScriptException();
    return Napi::Value();
  }
  Failure failure;
  PacketWatch* watch = PacketWatch::Start(env, Fd(fd.As<Napi::Number>().Int32Value()), on_packet.As<Napi::Function>(), &failure);
  if (watch == nullptr) {
    ErrorOf(env, failure, "packet socket").ThrowAsJavaScriptException();
    return Napi::Value();
  }
  const PacketWatchReference reference(watch);
  const Napi::Object handle = Napi::Object::New(env);
  handle.Set("close", Napi::Function::New(
                          env,
                          [reference](const Napi::CallbackInfo& call) { return Napi::Number::New(call.Env(), reference->Close()); },
                          "close"));
  return handle;
}

template <uint32_t (*Ask)(int)>
Napi::Value AskSocket(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (info[0].IsNumber()) return Napi::Number::New(env, Ask(info[0].As<Napi::Number>().Int32Value()));
  Napi::TypeError::New(env, "takes a descriptor").ThrowAsJavaScriptException();
  return Napi::Value();
}

} // namespace
} // namespace ringfence

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("launch", Napi::Function::New(env, ringfence::Launch, "launch"));
  exports.Set("keepPlace", Napi::Function::New(env, ringfence::KeepPlace, "keepPlace"));
  exports.Set("watchPackets", Napi::Function::New(env, ringfence::WatchPackets, "watchPackets"));
  exports.Set("socketDrops", Napi::Function::New(env, ringfence::AskSocket<ringfence::DropsOf>, "socketDrops"));
  exports.Set("packetCount", Napi::Function::New(env, ringfence::AskSocket<ringfence::CountOf>, "packetCount"));
  return exports;
}

NODE_API_MODULE(ringfence, Init)
