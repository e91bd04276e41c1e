/**
 * The profile that lets the launcher keep the capabilities of its user namespaces where
 * kernel.apparmor_restrict_unprivileged_userns is 1: it confines nothing else, as Ubuntu's own profiles for browsers do.
 *
 * @throws RangeError for a path that AppArmor's syntax cannot hold.
 */
export function appArmorProfileFor(launcher: string): string {
  // Globs and variables have a meaning there, and a quoted path has no way to hold a quote.
  if (/["\\@{}[\]*?^\n]/.test(launcher)) throw new RangeError(`AppArmor cannot name the path ${launcher}; install the package elsewhere`);
  return `# Lets Ringfence's launcher make user namespaces that work. As root:
#   ringfence doctor --apparmor > /etc/apparmor.d/ringfence
#   apparmor_parser -r /etc/apparmor.d/ringfence
# Only root should be able to write to the launcher: whatever lies at this path gets the permission.
abi <abi/4.0>,
include <tunables/global>

profile ringfence-launcher "${launcher}" flags=(unconfined) {
  userns,

  include if exists <local/ringfence>
}
`;
}
