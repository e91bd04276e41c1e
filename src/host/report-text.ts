import type { Ability, HostReport } from './examine.js';
import type { Finding } from './findings.js';

const STATUS: Record<Ability['status'], string> = { enforced: 'enforced', disabled: 'DOWN', unavailable: 'MISSING' };

/** The report for people: a line for each fence, then each cause once with its remedies, then the verdict. */
export function reportText({ abilities, findings, strict, around }: HostReport): string {
  const where = around.container === null ? '' : `, in a ${around.container} container`;
  const lines = [`Linux ${around.kernel}, uid ${around.uid}${where}`, ''];
  for (const ability of abilities) {
    lines.push(`  ${ability.name.padEnd(13)} ${STATUS[ability.status].padEnd(9)} ${mechanism(ability, findings)}`);
  }
  findings.forEach((finding, index) => {
    lines.push('', `[${index + 1}] ${finding.cause} (${finding.code})`);
    for (const remedy of finding.remedies) lines.push(`    -> ${remedy}`);
  });
  lines.push('', strict ? verdictGood(findings, abilities) : 'Strict runs are NOT possible here, and runs are strict unless started with --best-effort.');
  return `${lines.join('\n')}\n`;
}

/** A fence that is not there points to its finding. */
function mechanism({ status, by, name }: Ability, findings: readonly Finding[]): string {
  if (status === 'enforced') return by;
  const code = status === 'disabled' && name === 'network' ? 'network-fence-disabled' : by;
  const index = findings.findIndex((finding) => finding.code === code);
  return index < 0 ? by : `${by}  [${index + 1}]`;
}

function verdictGood(findings: readonly Finding[], abilities: readonly Ability[]): string {
  const all = abilities.every(({ status }) => status === 'enforced');
  const verdict = all ? 'every fence is there.' : 'every fence is there but Landlock, a second wall that this kernel does not have.';
  return findings.length === 0 ? `Strict runs are possible: ${verdict}` : 'Strict runs are possible, but for what is said above.';
}
