// Build tool, never shipped: libseccomp behind two commands. scripts/seccomp.mjs compiles, drives and checks it.
//   compile version          the version of libseccomp
//   compile tables           "x64|arm64 NAME NUMBER" for each call, "elsewhere NAME 0" for those of other architectures
//   compile program x64|arm64 < rules > program
// Rules, one a line: "default ACTION", then "rule ACTION NAME COUNT [INDEX OP VALUE VALUETWO]...", where an action is the
// number that the filter returns and OP is libseccomp's own number.
#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kHighestNumber = 1023, kLowestPseudoNumber = -12000, kArguments = 6 };

// Calls that Debian 12's libseccomp has no name for yet; their numbers are the same on both architectures.
static const struct {
  const char *name;
  int number;
} kNewer[] = {
    {"statmount", 457},   {"listmount", 458},      {"lsm_get_self_attr", 459}, {"lsm_set_self_attr", 460},
    {"lsm_list_modules", 461}, {"mseal", 462},     {"setxattrat", 463},        {"getxattrat", 464},
    {"listxattrat", 465}, {"removexattrat", 466},  {"open_tree_attr", 467},    {"file_getattr", 468},
    {"file_setattr", 469}, {"listns", 470},
};

static void Die(const char *what, const char *subject, int error) {
  fprintf(stderr, "compile: %s %s: %s\n", what, subject, strerror(error));
  exit(1);
}

static void PrintTable(const char *label, uint32_t arch) {
  for (int number = 0; number <= kHighestNumber; number++) {
    char *name = seccomp_syscall_resolve_num_arch(arch, number);
    if (name != NULL) printf("%s %s %d\n", label, name, number);
    free(name);
  }
  for (size_t i = 0; i < sizeof kNewer / sizeof *kNewer; i++) {
    char *name = seccomp_syscall_resolve_num_arch(arch, kNewer[i].number);
    if (name == NULL) printf("%s %s %d\n", label, kNewer[i].name, kNewer[i].number);
    free(name);
  }
}

// libseccomp gives a call that an architecture lacks a negative number there.
static void PrintElsewhere(uint32_t arch) {
  for (int number = -1; number >= kLowestPseudoNumber; number--) {
    char *name = seccomp_syscall_resolve_num_arch(arch, number);
    if (name != NULL) printf("elsewhere %s 0\n", name);
    free(name);
  }
}

static void Must(int result, const char *what, const char *subject) {
  if (result < 0) Die(what, subject, -result);
}

static scmp_filter_ctx NewFilter(uint32_t defaultAction, uint32_t arch) {
  scmp_filter_ctx filter = seccomp_init(defaultAction);
  if (filter == NULL) Die("seccomp_init", "", ENOMEM);
  Must(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "bad-architecture action", "");
  Must(seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree", "");
  if (arch != seccomp_arch_native()) {
    Must(seccomp_arch_add(filter, arch), "seccomp_arch_add", "");
    Must(seccomp_arch_remove(filter, SCMP_ARCH_NATIVE), "seccomp_arch_remove", "");
  }
  return filter;
}

static void AddRule(scmp_filter_ctx filter, uint32_t arch, uint32_t action, const char *name, unsigned count, char *rest) {
  // A rule takes this machine's number (or its negative stand-in), whatever the filter's architecture.
  int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) Die("no such call:", name, EINVAL);
  if (seccomp_syscall_resolve_name_arch(arch, name) < 0) return; // a call of another architecture
  struct scmp_arg_cmp args[kArguments];
  if (count > kArguments) Die("too many arguments:", name, EINVAL);
  for (unsigned i = 0; i < count; i++) {
    unsigned index, op;
    uint64_t value, valueTwo;
    int used = 0;
    if (sscanf(rest, "%u %u %" SCNu64 " %" SCNu64 "%n", &index, &op, &value, &valueTwo, &used) != 4)
      Die("malformed arguments:", name, EINVAL);
    rest += used;
    args[i] = (struct scmp_arg_cmp){index, (enum scmp_compare)op, value, valueTwo};
  }
  Must(seccomp_rule_add_exact_array(filter, action, number, count, args), "seccomp_rule_add", name);
}

static void CompileProgram(uint32_t arch) {
  char line[4096], name[64];
  uint32_t action;
  unsigned count;
  int used;
  if (fgets(line, sizeof line, stdin) == NULL || sscanf(line, "default %" SCNu32, &action) != 1)
    Die("the first line is not", "default ACTION", EINVAL);
  scmp_filter_ctx filter = NewFilter(action, arch);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (sscanf(line, "rule %" SCNu32 " %63s %u%n", &action, name, &count, &used) != 3) Die("malformed line:", line, EINVAL);
    AddRule(filter, arch, action, name, count, line + used);
  }
  // With an x32 part that has no rule, those calls get the default action; without one they would be a foreign
  // architecture, which kills.
  if (arch == SCMP_ARCH_X86_64) {
    uint32_t defaultAction;
    Must(seccomp_attr_get(filter, SCMP_FLTATR_ACT_DEFAULT, &defaultAction), "default action", "");
    Must(seccomp_merge(filter, NewFilter(defaultAction, SCMP_ARCH_X32)), "seccomp_merge", "x32");
  }
  Must(seccomp_export_bpf(filter, STDOUT_FILENO), "seccomp_export_bpf", "");
}

static uint32_t ArchOf(const char *label) {
  if (strcmp(label, "x64") == 0) return SCMP_ARCH_X86_64;
  if (strcmp(label, "arm64") == 0) return SCMP_ARCH_AARCH64;
  Die("no such architecture:", label, EINVAL);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "version") == 0) {
    const struct scmp_version *version = seccomp_version();
    printf("%u.%u.%u\n", version->major, version->minor, version->micro);
  } else if (argc == 2 && strcmp(argv[1], "tables") == 0) {
    PrintTable("x64", SCMP_ARCH_X86_64);
    PrintTable("arm64", SCMP_ARCH_AARCH64);
    PrintElsewhere(SCMP_ARCH_X86_64);
    PrintElsewhere(SCMP_ARCH_AARCH64);
  } else if (argc == 3 && strcmp(argv[1], "program") == 0) {
    CompileProgram(ArchOf(argv[2]));
  } else {
    Die("usage: compile version | tables | program x64|arm64", "", EINVAL);
  }
  return 0;
}
