// The addon's exports, launch(request) and watchPackets(request): see src/launcher/native.ts for the shapes.
#include <napi.h>
#include <uv.h>

#include <string>

#include "packets.h"
#include "run.h"
#include "spawn.h"

namespace ringfence {
namespace {

constexpr size_t kLongestCommand = 64;

// In Node's own form: errno negative, code by name.
void ThrowFailure(Napi::Env env, const Failure& failure, const std::string& launcher) {
  const int error = -failure.error;
  const std::string code = uv_err_name(error);
  const Napi::Error thrown =
      Napi::Error::New(env, code + ": " + uv_strerror(error) + ", " + failure.syscall + " '" + launcher + "'");
  Napi::Object fields = thrown.Value();
  fields.Set("code", code);
  fields.Set("errno", error);
  fields.Set("syscall", failure.syscall);
  fields.Set("path", launcher);
  thrown.ThrowAsJavaScriptException();
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
      launch.Set("pid", spawned->pid) && launch.Set("stdin", spawned->guest_stdin.get()) &&
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

Napi::Value Launch(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const Napi::Object request = info[0].IsObject() ? info[0].As<Napi::Object>() : Napi::Object::New(env);
  const Napi::Value launcher = request.Get("launcher");
  const Napi::Value plan = request.Get("plan");
  const Napi::Value on_record = request.Get("onRecord");
  const Napi::Value on_exit = request.Get("onExit");
  if (env.IsExceptionPending()) return Napi::Value();
  if (!launcher.IsString() || !IsBytes(plan) || !on_record.IsFunction() || !on_exit.IsFunction()) {
    Napi::TypeError::New(env, "launch() takes { launcher: string, plan: Uint8Array, onRecord, onExit: functions }")
        .ThrowAsJavaScriptException();
    return Napi::Value();
  }
  const std::string path = launcher.As<Napi::String>().Utf8Value();
  const Napi::Uint8Array bytes = plan.As<Napi::Uint8Array>();
  Spawned spawned;
  Failure failure;
  Run* run = nullptr;
  if (Spawn(path.c_str(), bytes.Data(), bytes.ByteLength(), &spawned, &failure)) {
    run = Run::Start(env, &spawned, on_record.As<Napi::Function>(), on_exit.As<Napi::Function>(), &failure);
  }
  if (run == nullptr) {
    ThrowFailure(env, failure, path);
    return Napi::Value();
  }
  const Napi::Object launch = Napi::Object::New(env);
  if (!Describe(env, run, &spawned, launch)) run->HangUp();
  return launch;
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
    ThrowFailure(env, failure, "packet socket");
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

} // namespace
} // namespace ringfence

static Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("launch", Napi::Function::New(env, ringfence::Launch, "launch"));
  exports.Set("watchPackets", Napi::Function::New(env, ringfence::WatchPackets, "watchPackets"));
  return exports;
}

NODE_API_MODULE(ringfence, Init)
