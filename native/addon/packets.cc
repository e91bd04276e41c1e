#include "packets.h"

#include <linux/if_packet.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <cerrno>

namespace ringfence {
namespace {

constexpr size_t kLongestPacket = 256; // the launcher's filter lets 128 bytes of each through
// Whoever floods fills the socket's buffer, and costs the host no more than this many calls in each pause.
constexpr int kPacketsAtOnce = 64;
constexpr uint64_t kRestMs = 10;
// The buffer holds less; packets that still come while it is emptied are the kernel's to drop.
constexpr int kPacketsAtLast = 8192;

// Of a packet socket, since they were read last; nothing where it is none.
tpacket_stats StatisticsOf(int fd) {
  tpacket_stats counts{};
  socklen_t size = sizeof counts;
  if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &counts, &size) != 0) return {};
  return counts;
}

} // namespace

PacketWatch* PacketWatch::Start(Napi::Env env, Fd fd, Napi::Function on_packet, Failure* failure) {
  uv_loop_t* loop = nullptr;
  napi_get_uv_event_loop(env, &loop);
  PacketWatch* watch = new PacketWatch(env, static_cast<Fd&&>(fd));
  const int error = watch->Watch(loop);
  if (error != 0) {
    *failure = {"uv_poll_start", -error};
    watch->fd_.release();
    watch->StopWatching();
    return nullptr;
  }
  watch->on_packet_ = Napi::Persistent(on_packet);
  napi_async_init(env, nullptr, Napi::String::New(env, "RINGFENCEPACKETS"), &watch->context_);
  napi_add_async_cleanup_hook(
      env,
      [](napi_async_cleanup_hook_handle, void* data) {
        static_cast<PacketWatch*>(data)->StopWatching();
        static_cast<PacketWatch*>(data)->fd_.reset();
      },
      watch, &watch->cleanup_hook_);
  return watch;
}

void PacketWatch::Release() {
  if (--references_ == 0) delete this;
}

int PacketWatch::Watch(uv_loop_t* loop) {
  watching_ = true;
  uv_timer_init(loop, &rest_);
  rest_.data = this;
  open_handles_++;
  const int error = uv_poll_init(loop, &poll_, fd_.get());
  if (error != 0) return error;
  poll_.data = this;
  poll_initialised_ = true;
  open_handles_++;
  return Poll();
}

int PacketWatch::Poll() {
  return uv_poll_start(&poll_, UV_READABLE,
                       [](uv_poll_t* handle, int, int) { static_cast<PacketWatch*>(handle->data)->OnReadable(); });
}

void PacketWatch::OnReadable() {
  const Napi::HandleScope scope(env_);
  if (Drain(kPacketsAtOnce) || !watching_) return;
  uv_poll_stop(&poll_);
  uv_timer_start(
      &rest_, [](uv_timer_t* timer) { static_cast<PacketWatch*>(timer->data)->Poll(); }, kRestMs, 0);
}

// True when nothing is left.
bool PacketWatch::Drain(int most) {
  for (int count = 0; count < most; count++) {
    uint8_t packet[kLongestPacket];
    const ssize_t size = recv(fd_.get(), packet, sizeof packet, MSG_DONTWAIT);
    // ENETDOWN is told once when loopback goes down with the namespace.
    if (size < 0 && (errno == EINTR || errno == ENETDOWN)) continue;
    if (size < 0) return true;
    Deliver(packet, static_cast<size_t>(size));
    // The callback may have closed this.
    if (!watching_) return true;
  }
  return false;
}

void PacketWatch::Deliver(const uint8_t* bytes, size_t size) {
  const Napi::HandleScope scope(env_);
  const Napi::Buffer<uint8_t> packet = Napi::Buffer<uint8_t>::Copy(env_, bytes, size);
  if (packet.IsEmpty()) return; // a worker that is being terminated
  const napi_value arguments[] = {packet};
  const napi_value receiver = env_.Global();
  if (napi_make_callback(env_, context_, receiver, on_packet_.Value(), 1, arguments, nullptr) != napi_pending_exception) return;
  napi_value error = nullptr;
  if (napi_get_and_clear_last_exception(env_, &error) == napi_ok) napi_fatal_exception(env_, error);
}

uint32_t PacketWatch::Close() {
  if (!watching_) return dropped_;
  Drain(kPacketsAtLast);
  dropped_ = CountDropped();
  StopWatching();
  fd_.release();
  return dropped_;
}

uint32_t PacketWatch::CountDropped() {
  return StatisticsOf(fd_.get()).tp_drops;
}

// libuv allows a descriptor to be closed as soon as its handle is being closed.
void PacketWatch::StopWatching() {
  if (!watching_) return;
  watching_ = false;
  CloseHandle(reinterpret_cast<uv_handle_t*>(&rest_));
  if (poll_initialised_) CloseHandle(reinterpret_cast<uv_handle_t*>(&poll_));
}

void PacketWatch::CloseHandle(uv_handle_t* handle) {
  uv_close(handle, [](uv_handle_t* closed) { static_cast<PacketWatch*>(closed->data)->OnHandleClosed(); });
}

void PacketWatch::OnHandleClosed() {
  if (--open_handles_ > 0) return;
  const Napi::HandleScope scope(env_);
  on_packet_.Reset();
  if (context_ != nullptr) napi_async_destroy(env_, context_);
  if (cleanup_hook_ != nullptr) napi_remove_async_cleanup_hook(cleanup_hook_);
  Release();
}

uint32_t CountOf(int fd) { return StatisticsOf(fd).tp_packets; }

uint32_t DropsOf(int fd) {
  uint32_t counts[SK_MEMINFO_VARS] = {};
  socklen_t size = sizeof counts;
  return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, counts, &size) == 0 ? counts[SK_MEMINFO_DROPS] : 0;
}

} // namespace ringfence
