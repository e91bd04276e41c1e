// A packet socket on the event loop of its environment: each packet to JavaScript, at a bounded rate.
#pragma once

#include <napi.h>
#include <uv.h>

#include "fd.h"
#include "spawn.h"

namespace ringfence {

// Lives until it is closed, its loop handles are closed and no JavaScript function refers to it; all on one thread.
class PacketWatch {
 public:
  // Null with *failure filled in when the loop does not take the descriptor, which stays the caller's.
  static PacketWatch* Start(Napi::Env env, Fd fd, Napi::Function on_packet, Failure* failure);

  void Retain() { references_++; }
  void Release();

  // Delivers what is queued and lets go of the descriptor, which is the caller's again. Returns how many packets the
  // kernel had no room for. Idempotent.
  uint32_t Close();

 private:
  PacketWatch(Napi::Env env, Fd fd) : env_(env), fd_(static_cast<Fd&&>(fd)) {}
  ~PacketWatch() = default;

  int Watch(uv_loop_t* loop);
  int Poll();
  void OnReadable();
  bool Drain(int most);
  void Deliver(const uint8_t* bytes, size_t size);
  uint32_t CountDropped();
  void StopWatching();
  void CloseHandle(uv_handle_t* handle);
  void OnHandleClosed();

  Napi::Env env_;
  Fd fd_;
  Napi::FunctionReference on_packet_;
  napi_async_context context_ = nullptr;
  napi_async_cleanup_hook_handle cleanup_hook_ = nullptr;
  uv_poll_t poll_;
  uv_timer_t rest_;
  uint32_t dropped_ = 0;
  int references_ = 1; // the watch itself
  int open_handles_ = 0;
  bool poll_initialised_ = false;
  bool watching_ = false;
};

// A counted reference, for functions that JavaScript may keep longer than the watch.
class PacketWatchReference {
 public:
  explicit PacketWatchReference(PacketWatch* watch) : watch_(watch) { watch_->Retain(); }
  PacketWatchReference(const PacketWatchReference& other) : watch_(other.watch_) { watch_->Retain(); }
  PacketWatchReference& operator=(const PacketWatchReference&) = delete;
  ~PacketWatchReference() { watch_->Release(); }
  PacketWatch* operator->() const { return watch_; }

 private:
  PacketWatch* watch_;
};

// How many packets passed a packet socket's filter since this was asked last, whether there was room for them or not.
uint32_t CountOf(int fd);

// How many packets the kernel dropped at a socket, for want of room in its buffer or its queue of connections; 0 where the
// kernel does not tell (before Linux 4.12).
uint32_t DropsOf(int fd);

} // namespace ringfence
