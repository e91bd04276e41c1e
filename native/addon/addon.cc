// The addon's exports: see src/launcher/native.ts for the shapes.
#include <napi.h>
#include <uv.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "packets.h"
#include "place.h"
#include "run.h"
#include "spawn.h"
#include "spawner.h"

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

Napi::Value TakeStreams(const Napi::CallbackInfo& info, const RunReference& run) {
  const Napi::Object numbers = Napi::Object::New(info.Env());
  Run::Streams streams = run->TakeStreams();
  // False in a worker that is being stopped: then they are closed with `streams`.
  const auto hand_over = [&numbers](const char* name, Fd* stream) {
    if (stream->valid() && numbers.Set(name, stream->get())) stream->release();
  };
  hand_over("stdin", &streams.in);
  hand_over("stdout", &streams.out);
  hand_over("stderr", &streams.error);
  return numbers;
}

// False when the environment is being stopped (a worker that is terminated): nothing can be handed to JavaScript then.
bool Describe(Napi::Env env, Run* run, const LaunchJob& job, Napi::Object launch) {
  const RunReference reference(run);
  const double age_ms = static_cast<double>(uv_hrtime() - job.started_at) / 1e6;
  return launch.Set("pid", job.spawned.pid) && launch.Set("ageMs", age_ms) &&
         launch.Set("takeStreams",
                    Napi::Function::New(
                        env, [reference](const Napi::CallbackInfo& info) { return TakeStreams(info, reference); }, "takeStreams")) &&
         launch.Set("send", Napi::Function::New(
                                env, [reference](const Napi::CallbackInfo& info) { return Send(info, reference); }, "send")) &&
         launch.Set("hangUp",
                    Napi::Function::New(env, [reference](const Napi::CallbackInfo&) { reference->HangUp(); }, "hangUp")) &&
         launch.Set("kill", Napi::Function::New(env, [reference](const Napi::CallbackInfo&) { reference->Kill(); }, "kill"));
}

bool IsBytes(const Napi::Value& value) {
  return value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_uint8_array;
}

void OnLaunched(Napi::Env env, LaunchJob* job) {
  Run* run = job->started ? Run::Start(env, &job->spawned, job->on_record.Value(), job->on_exit.Value(), &job->failure) : nullptr;
  if (run == nullptr) {
    job->launched.Reject(ErrorOf(env, job->failure, job->launcher).Value());
    return;
  }
  const Napi::Object launch = Napi::Object::New(env);
  if (Describe(env, run, *job, launch)) {
    job->launched.Resolve(launch);
  } else {
    run->HangUp();
  }
}

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
  Spawner::Job job = std::make_unique<LaunchJob>(env);
  job->launcher = launcher.As<Napi::String>();
  const Napi::Uint8Array bytes = plan.As<Napi::Uint8Array>();
  job->plan.assign(bytes.Data(), bytes.Data() + bytes.ByteLength());
  job->with_stdin = with_stdin.As<Napi::Boolean>();
  job->on_record = Napi::Persistent(on_record.As<Napi::Function>());
  job->on_exit = Napi::Persistent(on_exit.As<Napi::Function>());
  const Napi::Promise launched = job->launched.Promise();
  Spawner* spawner = Spawner::Of(env, OnLaunched, &job->failure);
  if (spawner == nullptr) {
    job->launched.Reject(ErrorOf(env, job->failure, job->launcher).Value());
  } else {
    spawner->Add(std::move(job));
  }
  return launched;
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
