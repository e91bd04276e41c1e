#include "plan.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <linux/filter.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

namespace ringfence {
namespace {

constexpr size_t kMaxPlanBytes = 64u << 20;

class Reader {
 public:
  Reader(const uint8_t* bytes, size_t size) : at_(bytes), left_(size) {}

  template <typename T>
  bool Number(T* out) {
    if (left_ < sizeof(T)) return false;
    memcpy(out, at_, sizeof(T));
    Skip(sizeof(T));
    return true;
  }

  // The bytes must end with a NUL; one inside is allowed only where the length is asked for (a made-up file's content).
  bool String(const char** out, uint32_t* length = nullptr) {
    uint32_t size = 0;
    if (!Number(&size) || size >= left_ || at_[size] != 0) return false;
    if (length == nullptr && memchr(at_, 0, size) != nullptr) return false;
    *out = reinterpret_cast<const char*>(at_);
    if (length != nullptr) *length = size;
    Skip(size + 1u);
    return true;
  }

  // A NULL-terminated array, as execve wants it.
  bool Strings(char*** out) {
    uint32_t count = 0;
    if (!Number(&count) || count > kMaxStrings) return false;
    char** list = static_cast<char**>(calloc(count + 1u, sizeof(char*)));
    if (list == nullptr) return false;
    for (uint32_t i = 0; i < count; i++) {
      const char* text = nullptr;
      if (!String(&text)) {
        free(list);
        return false;
      }
      list[i] = const_cast<char*>(text);
    }
    *out = list;
    return true;
  }

  bool AtEnd() const { return left_ == 0; }

 private:
  void Skip(size_t size) {
    at_ += size;
    left_ -= size;
  }
  const uint8_t* at_;
  size_t left_;
};

bool IsAbsolute(const char* path) { return path[0] == '/'; }

const char* ReadLimits(Reader& in, Plan* plan) {
  uint64_t* const fields[] = {&plan->memoryBytes, &plan->pids,          &plan->cpuQuotaUs,
                              &plan->cpuTimeMs,   &plan->openFiles,     &plan->fileSizeBytes,
                              &plan->scratchBytes, &plan->scratchInodes, &plan->deadlineMs};
  for (uint64_t* field : fields) {
    if (!in.Number(field)) return "limits are cut short";
  }
  return nullptr;
}

const char* ReadCgroup(Reader& in, Plan* plan) {
  if (!in.Number(&plan->cgroupVersion) || plan->cgroupVersion > 2) return "cgroup version is not 0, 1 or 2";
  if (!in.String(&plan->cgroupName)) return "cgroup name is malformed";
  if (strchr(plan->cgroupName, '/') != nullptr || plan->cgroupName[0] == '.') return "cgroup name is a path";
  if (!in.Number(&plan->cgroupParentCount) || plan->cgroupParentCount > kMaxCgroupParents) return "too many cgroup parents";
  if ((plan->cgroupVersion != 0) != (plan->cgroupParentCount != 0)) return "cgroup parents do not fit the version";
  if (plan->cgroupVersion != 0 && plan->cgroupName[0] == 0) return "cgroup name is empty";
  for (uint32_t i = 0; i < plan->cgroupParentCount; i++) {
    CgroupParent* parent = &plan->cgroupParents[i];
    if (!in.Number(&parent->controllers) || !in.String(&parent->directory)) return "a cgroup parent is malformed";
    if (!IsAbsolute(parent->directory)) return "a cgroup parent is not absolute";
  }
  return nullptr;
}

const char* ReadPorts(Reader& in, Plan* plan) {
  if (!in.Number(&plan->portCount) || plan->portCount > kMaxPorts) return "too many ports";
  for (uint32_t i = 0; i < plan->portCount; i++) {
    uint32_t word = 0;
    if (!in.Number(&word) || (word & 0xffff) == 0) return "a port is out of range";
    const uint32_t families = word & ~0xffffu;
    if (families == 0 || (families & ~(kPortIpv4 | kPortIpv6)) != 0) return "a port has no known family";
    plan->ports[i] = {static_cast<uint16_t>(word), (families & kPortIpv4) != 0, (families & kPortIpv6) != 0};
  }
  return nullptr;
}

const char* ReadFilter(Reader& in, Plan* plan) {
  uint32_t filter = 0;
  uint32_t bytes = 0;
  if (!in.Number(&filter) || filter > static_cast<uint32_t>(Filter::kNoNamespacesInet)) return "the filter is unknown";
  plan->filter = static_cast<Filter>(filter);
  if (!in.String(&plan->program, &bytes)) return "the filter's program is malformed";
  if (bytes % sizeof(sock_filter) != 0 || bytes / sizeof(sock_filter) > kMaxProgram) return "the filter's program has an odd size";
  plan->programLength = bytes / sizeof(sock_filter);
  if ((plan->filter == Filter::kOwn) != (bytes != 0)) return "a program does not fit the filter";
  return nullptr;
}

const char* ReadMounts(Reader& in, Plan* plan) {
  if (!in.Number(&plan->mountCount) || plan->mountCount > kMaxMounts) return "too many mounts";
  for (uint32_t i = 0; i < plan->mountCount; i++) {
    Mount* mount = &plan->mounts[i];
    uint32_t kind = 0;
    if (!in.Number(&kind) || kind < static_cast<uint32_t>(MountKind::kBind) || kind > static_cast<uint32_t>(MountKind::kPin)) return "a mount's kind is unknown";
    mount->kind = static_cast<MountKind>(kind);
    if (!in.Number(&mount->flags) || !in.Number(&mount->mode)) return "a mount is cut short";
    if (!in.String(&mount->path)) return "a mount's path is malformed";
    if (!IsAbsolute(mount->path) || mount->path[1] == 0) return "a mount's path is not absolute or is the root";
    if (!in.String(&mount->source, &mount->sourceLength)) return "a mount's source is malformed";
    if (mount->kind != MountKind::kFile && strlen(mount->source) != mount->sourceLength) return "a mount's source has a NUL";
    if (mount->kind == MountKind::kBind && !IsAbsolute(mount->source)) return "a bind's source is not absolute";
  }
  return nullptr;
}

} // namespace

const char* ParsePlan(const uint8_t* bytes, size_t size, Plan* plan) {
  Reader in(bytes, size);
  uint32_t magic = 0, version = 0;
  if (!in.Number(&magic) || magic != kPlanMagic) return "not a plan";
  if (!in.Number(&version) || version != kPlanVersion) return "another version of the plan";
  uint32_t* const head[] = {&plan->flags, &plan->insideUid, &plan->insideGid, &plan->outsideUid, &plan->outsideGid};
  for (uint32_t* field : head) {
    if (!in.Number(field)) return "header is cut short";
  }
  if (const char* wrong = ReadLimits(in, plan)) return wrong;
  if (const char* wrong = ReadCgroup(in, plan)) return wrong;
  if (!in.String(&plan->executable) || !IsAbsolute(plan->executable)) return "executable is not an absolute path";
  if (!in.String(&plan->cwd) || !IsAbsolute(plan->cwd)) return "cwd is not an absolute path";
  if (!in.String(&plan->hostname)) return "hostname is malformed";
  if (!in.Strings(&plan->argv) || plan->argv[0] == nullptr) return "argv is malformed or empty";
  if (!in.Strings(&plan->env)) return "env is malformed";
  if (const char* wrong = ReadPorts(in, plan)) return wrong;
  if (const char* wrong = ReadFilter(in, plan)) return wrong;
  if (const char* wrong = ReadMounts(in, plan)) return wrong;
  if (!in.AtEnd()) return "bytes after the end";
  return nullptr;
}

bool ReadPlan(Plan* plan) {
  struct stat info;
  if (fstat(kPlanFd, &info) != 0) return Fail(Stage::kPlan, errno, "fstat", "plan");
  const size_t size = static_cast<size_t>(info.st_size);
  if (size > kMaxPlanBytes) return Fail(Stage::kPlan, EFBIG, "fstat", "plan");
  uint8_t* bytes = static_cast<uint8_t*>(malloc(size + 1));
  if (bytes == nullptr) return Fail(Stage::kPlan, ENOMEM, "malloc", "plan");
  size_t have = 0;
  while (have < size) {
    const ssize_t got = pread(kPlanFd, bytes + have, size - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Fail(Stage::kPlan, got < 0 ? errno : EIO, "pread", "plan");
    have += static_cast<size_t>(got);
  }
  close(kPlanFd);
  if (const char* wrong = ParsePlan(bytes, size, plan)) return Fail(Stage::kPlan, EINVAL, "parse", wrong);
  return true;
}

} // namespace ringfence
