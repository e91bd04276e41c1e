import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';

/** What surrounds this process and decides why the kernel refused something: read once, judged by `findings.ts`. */
export interface Circumstances {
  /** For example `6.1.0-18-amd64`. */
  kernel: string;
  uid: number;
  /** `docker`, `podman`, `kubernetes`, `lxc` or what else the container's maker calls it; null outside of one. */
  container: string | null;
  /** True when a seccomp filter is on this process. */
  seccompFilter: boolean;
  /** This process's AppArmor profile, for example `docker-default`; null where there is none, or no AppArmor. */
  appArmorProfile: string | null;
  /** Settings of the kernel by their sysctl name; those that this kernel lacks are absent. */
  sysctls: ReadonlyMap<string, number>;
  /** The launcher's absolute path; null where there is none. */
  launcher: string | null;
  /** The value of SANDBOX_DISABLE_NETNS_FIREWALL. */
  networkToggle: string | undefined;
}

/** The kinds of namespace that a run needs, as `user.max_<kind>_namespaces` names them. */
export const NAMESPACE_KINDS = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'] as const;

const SYSCTLS = [
  ...NAMESPACE_KINDS.map((kind) => `user.max_${kind}_namespaces`),
  'kernel.unprivileged_userns_clone',
  'kernel.apparmor_restrict_unprivileged_userns',
];

/** Where the facts lie, so that other machines' can be tried. */
export interface CircumstanceSources {
  /** The content of a file, or null. */
  read(path: string): string | null;
  exists(path: string): boolean;
  env: Readonly<Record<string, string | undefined>>;
}

export function readCircumstances(launcher: string | null, sources: CircumstanceSources = ofThisMachine): Circumstances {
  const status = sources.read('/proc/self/status') ?? '';
  return {
    kernel: release(),
    uid: process.geteuid?.() ?? -1,
    container: containerOf(sources),
    seccompFilter: /^Seccomp:\s*2$/m.test(status),
    appArmorProfile: appArmorProfile(sources),
    sysctls: readSysctls(sources),
    launcher,
    networkToggle: sources.env['SANDBOX_DISABLE_NETNS_FIREWALL'],
  };
}

/** The marks that container runtimes leave; none of them is a rule, and only the wording of a remedy hangs on them. */
function containerOf({ read, exists, env }: CircumstanceSources): string | null {
  if (env['KUBERNETES_SERVICE_HOST'] !== undefined) return 'kubernetes';
  if (exists('/run/.containerenv')) return 'podman';
  if (exists('/.dockerenv')) return 'docker';
  const named = read('/run/systemd/container')?.trim() ?? env['container'] ?? '';
  if (named !== '') return named;
  return /\/(docker|containerd|kubepods|lxc)[-/]/.exec(read('/proc/self/cgroup') ?? '')?.[1] ?? null;
}

function appArmorProfile({ read }: CircumstanceSources): string | null {
  if (read('/sys/module/apparmor/parameters/enabled')?.trim() !== 'Y') return null;
  const label = (read('/proc/self/attr/apparmor/current') ?? read('/proc/self/attr/current') ?? '').trim().replace('\0', '');
  const profile = label.replace(/ \(\w+\)$/, '');
  return profile === '' || profile === 'unconfined' ? null : profile;
}

function readSysctls({ read }: CircumstanceSources): Map<string, number> {
  const found = new Map<string, number>();
  for (const name of SYSCTLS) {
    const text = read(`/proc/sys/${name.replaceAll('.', '/')}`);
    if (text !== null && /^\s*\d+\s*$/.test(text)) found.set(name, Number(text));
  }
  return found;
}

const ofThisMachine: CircumstanceSources = {
  read(path) {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      // Whatever the reason: what cannot be read tells nothing.
      return null;
    }
  },
  exists: existsSync,
  env: process.env,
};
