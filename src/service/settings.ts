import { availableParallelism } from 'node:os';

import { findDeno } from '../guest/find-deno.js';
import { isLoopback } from './loopback.js';

/** How the service is set up, checked. */
export interface ServiceSettings {
  host: string;
  /** 0: any that is free. */
  port: number;
  runtime: 'deno' | 'node';
  /** The program of Deno: an absolute path, or a name to be found in PATH. */
  denoBin: string;
  /** The only broker that a request may name; null: any. */
  brokerUrl: string | null;
  /** What callers have to know; null: nothing, and nobody but this machine can call. */
  token: string | null;
  /** Runs at one time. */
  concurrency: number;
  /** Requests that wait for a place. */
  queueLength: number;
  /** Sandboxes kept ready. */
  warm: number;
  /** Serve the page for browsers. */
  page: boolean;
  maxBodyBytes: number;
  isolation: 'strict' | 'best-effort';
  logLevel: (typeof LOG_LEVELS)[number];
}

/** A setting that cannot be used. The message names it, what was expected and what came. */
export class SettingError extends Error {
  override readonly name = 'SettingError';
}

/** One setting: its variable, its flag on the command line, and what turns their text into a value. */
export interface Setting<T> {
  variable: string;
  /** Null where a command line, which every user of the machine can read, is no place for it. */
  flag: string | null;
  /** How the help text calls its value; null for a switch. */
  value: string | null;
  description: string;
  /** @throws SettingError without the setting's name, for example `must be a whole number`. */
  read(text: string): T;
  preset(env: Environment): T;
  /** The value must not be repeated in messages. */
  secret?: true;
}

type Environment = Readonly<Record<string, string | undefined>>;

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

/** Every setting, in the order of the help text. */
export const settingTable: { [Name in keyof ServiceSettings]: Setting<ServiceSettings[Name]> } = {
  port: {
    variable: 'PORT',
    flag: '--port',
    value: 'number',
    description: 'port to listen on; 0 picks one that is free',
    read: wholeNumber(0, 65_535),
    preset: () => 8787,
  },
  host: {
    variable: 'HOST',
    flag: '--host',
    value: 'address',
    description: 'address to listen on; all but loopback need SANDBOX_TOKEN',
    read: address,
    preset: () => '127.0.0.1',
  },
  token: {
    variable: 'SANDBOX_TOKEN',
    flag: null,
    value: null,
    description: 'what callers send as "Authorization: Bearer ..."',
    read: token,
    preset: () => null,
    secret: true,
  },
  runtime: {
    variable: 'RINGFENCE_RUNTIME',
    flag: '--runtime',
    value: 'name',
    description: 'what holds the functions: deno or node',
    read: oneOf('deno', 'node'),
    preset: () => 'deno',
  },
  denoBin: {
    variable: 'DENO_BIN',
    flag: '--deno',
    value: 'program',
    description: 'the program of Deno: a name in PATH or an absolute path',
    read: (text) => text,
    preset: findDeno,
  },
  concurrency: {
    variable: 'RINGFENCE_CONCURRENCY',
    flag: '--concurrency',
    value: 'number',
    description: 'runs at one time',
    read: wholeNumber(1, 10_000),
    preset: () => 4 * availableParallelism(),
  },
  queueLength: {
    variable: 'RINGFENCE_QUEUE',
    flag: '--queue',
    value: 'number',
    description: 'requests that may wait for a place; more are answered 429',
    read: wholeNumber(0, 100_000),
    preset: () => 256,
  },
  warm: {
    variable: 'RINGFENCE_WARM',
    flag: '--warm',
    value: 'number',
    description: 'sandboxes kept ready, each for one run',
    read: wholeNumber(0, 1000),
    preset: () => 0,
  },
  brokerUrl: {
    variable: 'SANDBOX_BROKER_URL',
    flag: '--broker',
    value: 'url',
    description: 'the only broker that requests may name',
    read: brokerUrl,
    preset: () => null,
  },
  maxBodyBytes: {
    variable: 'RINGFENCE_MAX_BODY',
    flag: '--max-body',
    value: 'bytes',
    description: 'largest request; more is answered 413',
    read: wholeNumber(1024, 256 * 1024 * 1024),
    preset: () => 2 * 1024 * 1024,
  },
  isolation: {
    variable: 'RINGFENCE_ISOLATION',
    flag: '--isolation',
    value: 'mode',
    description: 'strict refuses to run where a fence cannot be had; best-effort runs and reports',
    read: oneOf('strict', 'best-effort'),
    preset: () => 'strict',
  },
  page: {
    variable: 'RINGFENCE_PAGE',
    flag: '--page',
    value: null,
    description: 'serve a page at / to write and run functions in a browser',
    read: onOrOff,
    preset: () => false,
  },
  logLevel: {
    variable: 'RINGFENCE_LOG_LEVEL',
    flag: '--log-level',
    value: 'level',
    description: LOG_LEVELS.join(', '),
    read: oneOf(...LOG_LEVELS),
    preset: () => 'info',
  },
};

/**
 * Reads all settings: `given` (flags, by the setting's name) before the environment, where an empty variable is an absent one.
 * @throws SettingError
 */
export function readSettings(
  env: Environment,
  given: Readonly<Partial<Record<keyof ServiceSettings, string>>> = {},
): ServiceSettings {
  const read = <Name extends keyof ServiceSettings>(name: Name): ServiceSettings[Name] => {
    const setting: Setting<ServiceSettings[Name]> = settingTable[name];
    const flag = given[name];
    const text = flag ?? env[setting.variable] ?? '';
    if (flag === undefined && text === '') return setting.preset(env);
    return named(setting, flag === undefined ? setting.variable : (setting.flag ?? name), text);
  };
  const names = Object.keys(settingTable) as (keyof ServiceSettings)[];
  const settings = Object.fromEntries(names.map((name) => [name, read(name)])) as unknown as ServiceSettings;
  if (settings.token === null && !isLoopback(settings.host)) {
    throw new SettingError(`HOST is ${settings.host}, which other machines may reach: set SANDBOX_TOKEN, or listen on 127.0.0.1`);
  }
  return settings;
}

function named<T>(setting: Setting<T>, name: string, text: string): T {
  try {
    return setting.read(text);
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    throw new SettingError(`${name} ${error.message}${setting.secret === true ? '' : `, not ${JSON.stringify(text)}`}`);
  }
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= most)) throw new SettingError(`must be a whole number from ${least} to ${most}`);
    return value;
  };
}

function oneOf<const T extends string>(...values: readonly T[]): (text: string) => T {
  return (text) => {
    const value = values.find((each) => each === text);
    if (value === undefined) throw new SettingError(`must be ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`);
    return value;
  };
}

function onOrOff(text: string): boolean {
  if (['1', 'true', 'on'].includes(text)) return true;
  if (['0', 'false', 'off'].includes(text)) return false;
  throw new SettingError('must be 1 or 0');
}

function address(text: string): string {
  if (!/^[\w.:%-]+$/.test(text)) throw new SettingError('must be an address or a host name');
  return text;
}

/** What fits into a header as it is: anything else would never match. */
function token(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new SettingError('must be printable ASCII without spaces');
  return text;
}

function brokerUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) throw new SettingError('must be an http or https url');
  return text;
}
