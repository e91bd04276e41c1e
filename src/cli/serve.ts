import { Option } from 'commander';

import { Cancellation } from './cancellation.js';
import type { CliCommand } from './command.js';
import { UsageError } from './usage-error.js';
import { readSettings, SettingError, settingTable } from '../service/settings.js';
import type { ServiceSettings } from '../service/settings.js';

const EXAMPLES = `
Examples:
  ringfence serve                            on 127.0.0.1:8787, for this machine only
  curl -d '{"source":"export default (n) => n * 2","input":21,"capabilities":{}}' http://127.0.0.1:8787/run
  ringfence serve --page --runtime node      with a page at http://127.0.0.1:8787/
  SANDBOX_TOKEN=... ringfence serve --host 0.0.0.0 --concurrency 16 --warm 4

Every flag has a variable, named after it above. SANDBOX_TOKEN has no flag: all users of this machine can read a command line.
SIGTERM or Ctrl-C: what runs is finished, the rest is refused; a second one ends it at once.
`;

/** `ringfence serve`: functions over HTTP. */
export const serveCommand: CliCommand = {
  define(program, finish) {
    const command = program
      .command('serve')
      .usage('[flags]')
      .summary('run functions over HTTP')
      .description('Serves POST /run, GET /health, GET /ready and GET /metrics. Each function runs in a sandbox of its own.')
      .addHelpText('after', EXAMPLES);
    for (const { flag, value, description, variable } of Object.values(settingTable)) {
      if (flag !== null) command.addOption(new Option(value === null ? flag : `${flag} <${value}>`, `${description} (${variable})`));
    }
    command.action(async (flags: Record<string, string | true>) => finish(await serve(flags)));
  },
};

async function serve(flags: Record<string, string | true>): Promise<number> {
  // Its dependencies are many: no other command waits for them to load.
  const [{ createLog }, { LogFile }, { createService }] = await Promise.all([
    import('../service/log.js'),
    import('../service/log-file.js'),
    import('../service/service.js'),
  ]);
  try {
    const settings = readSettings(process.env, settingsOf(flags));
    const destination = new LogFile();
    const cancellation = new Cancellation();
    const service = await createService(settings, createLog(settings.logLevel, destination));
    await service.listen();
    await cancellation.came;
    await service.stop();
    await destination.end();
    return 0;
  } catch (error) {
    if (error instanceof SettingError) throw new UsageError(error.message);
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall === 'listen' || syscall === 'getaddrinfo') throw new UsageError(`cannot listen: ${(error as Error).message} (${code}); see HOST and PORT`);
    throw error;
  }
}

/** By the settings' names, whatever the flags are called. */
function settingsOf(flags: Record<string, string | true>): Partial<Record<keyof ServiceSettings, string>> {
  const given: Partial<Record<keyof ServiceSettings, string>> = {};
  for (const name of Object.keys(settingTable) as (keyof ServiceSettings)[]) {
    const { flag } = settingTable[name];
    const value = flag === null ? undefined : flags[new Option(flag).attributeName()];
    if (value !== undefined) given[name] = String(value);
  }
  return given;
}
