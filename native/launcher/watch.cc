#include "watch.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ringfence {
namespace {

constexpr uint16_t kDnsPort = 53;
constexpr int kWatchBuffer = 1 << 20;
constexpr uint32_t kWatchedBytes = 128;
constexpr uint32_t kIpv6Header = 40;

// A program that is written front to back: jumps to the end are patched when the end is known.
class WatchProgram {
 public:
  void Add(sock_filter instruction) { code_[length_++] = instruction; }
  void Load(uint16_t size, uint32_t offset) { Add(BPF_STMT(static_cast<uint16_t>(BPF_LD | size | BPF_ABS), offset)); }
  void LoadBehindHeader(uint16_t size, uint32_t offset) { Add(BPF_STMT(static_cast<uint16_t>(BPF_LD | size | BPF_IND), offset)); }
  // Ends with "not this packet" where the accumulator is, or is not, this value.
  void DropIf(uint32_t value) { Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)), Return(0); }
  void DropUnless(uint32_t value) { Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0)), Return(0); }
  void KeepIf(uint32_t value) { Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1)), Return(kWatchedBytes); }
  void And(uint32_t mask) { Add(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask)); }
  void Return(uint32_t bytes) { Add(BPF_STMT(BPF_RET | BPF_K, bytes)); }
  // The block that follows, up to EndBlock, is for packets whose accumulator is this value.
  uint32_t BeginBlock(uint32_t value) {
    Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
    Add(BPF_STMT(BPF_JMP | BPF_JA, 0));
    return length_ - 1;
  }
  void EndBlock(uint32_t begin) { code_[begin].k = length_ - begin - 1; }
  sock_fprog Get() { return {static_cast<unsigned short>(length_), code_}; }

 private:
  sock_filter code_[64 + 4 * kMaxPorts];
  uint32_t length_ = 0;
};

// Of TCP only segments with SYN and without ACK, to a port that no listener of the host's has.
void AddTransport(const Plan& plan, bool isIpv6, uint32_t protocolAt, WatchProgram* program) {
  program->Load(BPF_B, protocolAt);
  program->KeepIf(IPPROTO_UDP);
  program->KeepIf(IPPROTO_UDPLITE); // where the caller's own filter of system calls lets it be made
  program->DropUnless(IPPROTO_TCP);
  // X is the length of the network header.
  program->LoadBehindHeader(BPF_B, 13);
  program->And(0x12);
  program->DropUnless(0x02);
  program->LoadBehindHeader(BPF_H, 2);
  for (uint32_t i = 0; i < plan.portCount; i++) {
    if (isIpv6 ? plan.ports[i].ipv6 : plan.ports[i].ipv4) program->DropIf(plan.ports[i].number);
  }
  program->Return(kWatchedBytes);
}

// Sees the packets that open something and that the kernel will refuse, so that the host's log has them: whatever no
// listener takes, but nothing that stays on the guest's own loopback. Offsets are from the network header.
WatchProgram WatchRefused(const Plan& plan) {
  WatchProgram program;
  program.Load(BPF_B, static_cast<uint32_t>(SKF_AD_OFF) + SKF_AD_PKTTYPE);
  program.DropIf(PACKET_OUTGOING); // on loopback each packet passes twice
  program.Load(BPF_H, static_cast<uint32_t>(SKF_AD_OFF) + SKF_AD_PROTOCOL);
  const uint32_t ipv4 = program.BeginBlock(ETH_P_IP);
  program.Load(BPF_B, 16);
  program.DropIf(IN_LOOPBACKNET);
  program.Add(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0));
  AddTransport(plan, false, 9, &program);
  program.EndBlock(ipv4);
  program.DropUnless(ETH_P_IPV6);
  program.Load(BPF_W, 36);
  // ::1 is the only address below ::2 that can be dialled.
  const uint32_t low = program.BeginBlock(1);
  program.Load(BPF_W, 24);
  const uint32_t first = program.BeginBlock(0);
  program.Load(BPF_W, 28);
  const uint32_t second = program.BeginBlock(0);
  program.Load(BPF_W, 32);
  program.DropIf(0);
  program.EndBlock(second);
  program.EndBlock(first);
  program.EndBlock(low);
  // Fragments, and a routing header, which any guest may ask for: what they hold is for the host to find out.
  program.Load(BPF_B, 6);
  program.KeepIf(IPPROTO_FRAGMENT);
  program.KeepIf(IPPROTO_ROUTING);
  program.Add(BPF_STMT(BPF_LDX | BPF_IMM, kIpv6Header));
  AddTransport(plan, true, 6, &program);
  return program;
}

// Drops what is no TCP segment with SYN and without ACK, and loads the port of what is one.
void AddBegins(uint32_t protocolAt, WatchProgram* program) {
  program->Load(BPF_B, protocolAt);
  program->DropUnless(IPPROTO_TCP);
  program->LoadBehindHeader(BPF_B, 13);
  program->And(0x12);
  program->DropUnless(0x02);
  program->LoadBehindHeader(BPF_H, 2);
}

// Passes what begins a connection to the host's listeners, but for the guest's own loopback, where of these only the resolver
// is. Nobody reads it: the kernel counts what has passed, and so the host knows of those that it never gets to see.
WatchProgram CountBegun(const Plan& plan) {
  WatchProgram program;
  program.Load(BPF_B, static_cast<uint32_t>(SKF_AD_OFF) + SKF_AD_PKTTYPE);
  program.DropIf(PACKET_OUTGOING);
  program.Load(BPF_H, static_cast<uint32_t>(SKF_AD_OFF) + SKF_AD_PROTOCOL);
  const uint32_t ipv4 = program.BeginBlock(ETH_P_IP);
  program.Add(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0));
  program.Load(BPF_B, 16);
  const uint32_t loopback = program.BeginBlock(IN_LOOPBACKNET);
  AddBegins(9, &program);
  program.DropUnless(kDnsPort);
  program.Load(BPF_W, 16);
  program.DropUnless(INADDR_LOOPBACK);
  program.Return(kWatchedBytes);
  program.EndBlock(loopback);
  AddBegins(9, &program);
  for (uint32_t i = 0; i < plan.portCount; i++) {
    if (plan.ports[i].ipv4) program.KeepIf(plan.ports[i].number);
  }
  program.Return(0);
  program.EndBlock(ipv4);
  program.DropUnless(ETH_P_IPV6);
  program.Add(BPF_STMT(BPF_LDX | BPF_IMM, kIpv6Header));
  AddBegins(6, &program);
  for (uint32_t i = 0; i < plan.portCount; i++) {
    if (plan.ports[i].ipv6) program.KeepIf(plan.ports[i].number);
  }
  program.Return(0);
  return program;
}

Fd OpenPackets(WatchProgram program, int buffer) {
  Fd fd(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fd;
  const sock_fprog filter = program.Get();
  sockaddr_ll any{};
  any.sll_family = AF_PACKET;
  any.sll_protocol = htons(ETH_P_ALL);
  // The filter first: an unbound packet socket sees nothing.
  if (setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0 ||
      setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) != 0 ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) {
    return Fd();
  }
  return fd;
}

} // namespace

Fd OpenWatch(const Plan& plan) { return OpenPackets(WatchRefused(plan), kWatchBuffer); }

Fd OpenCounter(const Plan& plan) { return OpenPackets(CountBegun(plan), 0); }

} // namespace ringfence
