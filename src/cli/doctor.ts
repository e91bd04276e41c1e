import { Option } from 'commander';

import { appArmorProfileFor } from '../host/apparmor.js';
import { examine } from '../host/examine.js';
import type { HostReport } from '../host/examine.js';
import { reportText } from '../host/report-text.js';
import { locateLauncher, NativeFileError } from '../launcher/locate.js';
import { Host } from '../run/host.js';
import { runnerOf } from '../run/run.js';
import type { CliCommand } from './command.js';
import { reportBroken } from './broken-output.js';
import { Output } from './output.js';
import { UsageError } from './usage-error.js';

const EXAMPLES = `
Examples:
  ringfence doctor                  a line for each fence, and the remedy for what is missing
  ringfence doctor --json           the same as one JSON document
  ringfence doctor --apparmor       a profile for hosts that restrict user namespaces by AppArmor (Ubuntu 24.04)

Exit code: 0 if strict runs are possible here, else 1
`;

interface DoctorFlags {
  json?: boolean;
  apparmor?: boolean;
}

/** `ringfence doctor`: what this host can enforce, found by launching a trivial command for real. */
export const doctorCommand: CliCommand = {
  define(program, finish) {
    program
      .command('doctor')
      .usage('[flags]')
      .summary('what this machine can enforce, and how to get what is missing')
      .description('Starts a trivial command in sandboxes and says, fence by fence, what this machine, this account and this place can enforce.')
      .option('--json', 'print one JSON document')
      .addOption(new Option('--apparmor', 'print an AppArmor profile for the launcher instead').conflicts('json'))
      .addHelpText('after', EXAMPLES)
      .action(async (flags: DoctorFlags) => finish(await (flags.apparmor === true ? printProfile() : diagnose(flags))));
  },
};

async function diagnose(flags: DoctorFlags): Promise<number> {
  const { cgroup } = await new Host().facts();
  const report = await examine({
    // What it would warn of is a finding of the report.
    freshRunner: () => runnerOf(new Host(() => undefined)),
    launcher: launcherPath(),
    cgroupProblem: cgroup.kind === 'unavailable' ? cgroup : null,
  });
  return (await print(flags.json === true ? `${JSON.stringify(documentOf(report), null, 2)}\n` : reportText(report))) ?? (report.strict ? 0 : 1);
}

async function printProfile(): Promise<number> {
  try {
    return (await print(appArmorProfileFor(locateLauncher()))) ?? 0;
  } catch (error) {
    if (error instanceof NativeFileError || error instanceof RangeError) throw new UsageError(error.message);
    throw error;
  }
}

/** The exit code where it cannot be printed. */
async function print(text: string): Promise<number | null> {
  const stdout = new Output(process.stdout);
  void stdout.write(text);
  await stdout.flushed();
  return stdout.failure === null ? null : reportBroken(stdout.failure);
}

function launcherPath(): string | null {
  try {
    return locateLauncher();
  } catch (error) {
    if (error instanceof NativeFileError) return null;
    throw error;
  }
}

function documentOf({ around, ...report }: HostReport): object {
  return { ...report, host: { ...around, sysctls: Object.fromEntries(around.sysctls) } };
}
