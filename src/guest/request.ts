import { z } from 'zod';

import { MAX_METHOD_CHARACTERS } from './messages.js';
import { isPlainObject, kindOf } from '../run/plain-object.js';

/** Called with each value that the guest gives; what it returns, or its promise does, must be JSON. */
export type Binding = (args: any) => unknown;

/** What `executor.run` takes. */
export interface GuestRequest {
  /** TypeScript or JavaScript: a module that exports a function of one argument by default. */
  source: string;
  /** JSON. */
  input?: unknown;
  capabilities?:
    | {
        /** Hosts that the function may connect to, as in an allowlist of the network. */
        net?: readonly string[] | undefined;
        /** Hosts that modules may be imported from; Deno only. */
        import?: readonly string[] | undefined;
        /** Milliseconds of wall clock, 1 to 30000. Default: 5000. */
        timeoutMs?: number | undefined;
        /** MiB of heap, 16 to 1024. Default: 128. */
        memoryMb?: number | undefined;
      }
    | undefined;
  /** The function sees them as `globalThis.__secrets`. */
  secrets?: Readonly<Record<string, string>> | undefined;
  /** Functions that the guest calls as `host.name(args)`, or a broker that its `questpie` calls are relayed to. */
  bindings?: Readonly<Record<string, Binding>> | { url: string; token: string } | undefined;
  /** Ends the run as canceled. */
  signal?: AbortSignal | undefined;
  /** Called with each line of the log as it comes. Must not throw. */
  onLog?: ((line: string) => void) | undefined;
}

/** A request that was checked: defaults filled in, limits clamped. */
export interface CheckedRequest {
  source: string;
  /** As JSON; null where there is none. */
  input: string | null;
  net: string[];
  import: string[];
  timeoutMs: number;
  memoryMb: number;
  secrets: Record<string, string>;
  bindings: { kind: 'none' } | { kind: 'functions'; functions: Record<string, Binding> } | { kind: 'broker'; url: string; token: string };
  signal: AbortSignal | null;
  onLog: ((line: string) => void) | null;
}

const TIMEOUT_MS = { least: 1, most: 30_000, otherwise: 5000 };
const MEMORY_MB = { least: 16, most: 1024, otherwise: 128 };

const clamped = ({ least, most, otherwise }: typeof TIMEOUT_MS) =>
  z.unknown().optional().transform((value) => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return otherwise;
    return Math.min(most, Math.max(least, Math.round(value)));
  });

const hosts = (name: string) => z.array(z.string(`${name} must be an array of hosts`), `${name} must be an array of hosts`).default([]);

/** Says what came, where that is no object whose entries could be read. */
const expected = (what: string) => ({
  error: ({ input }: { input?: unknown }) => (isPlainObject(input) ? what : `${what}, got ${kindOf(input)}`),
});

const capabilityFields = z.object({
  net: hosts('capabilities.net'),
  import: hosts('capabilities.import'),
  timeoutMs: clamped(TIMEOUT_MS),
  memoryMb: clamped(MEMORY_MB),
});

const capabilities = z
  .custom<Record<string, unknown>>(isPlainObject, expected('capabilities must be an object'))
  .pipe(capabilityFields)
  .prefault({});

type Bindings = Record<string, Binding> | { url: string; token: string };

const BINDINGS = expected('bindings must be an object of functions, or { url, token } as strings');

function nameProblem(bindings: unknown): string | null {
  if (!isPlainObject(bindings) || Object.keys(bindings).every(isMethod)) return null;
  return `bindings must be functions with names of 1 to ${MAX_METHOD_CHARACTERS} characters`;
}

/** As `messages.ts` takes it in a call. */
const isMethod = (name: string): boolean => name.length > 0 && name.length <= MAX_METHOD_CHARACTERS;

const isFunction = (value: unknown): value is Binding => typeof value === 'function';

const bindings = z
  .custom<Bindings>((value) => {
    if (!isPlainObject(value)) return false;
    return isBroker(value) || Object.entries(value).every(([name, each]) => isMethod(name) && isFunction(each));
  }, { error: ({ input }) => nameProblem(input) ?? BINDINGS.error({ input }) })
  .optional()
  .transform((value): CheckedRequest['bindings'] => {
    if (value === undefined) return { kind: 'none' };
    if (isBroker(value)) return { kind: 'broker', url: value.url, token: value.token };
    return { kind: 'functions', functions: { ...(value as Record<string, Binding>) } };
  });

function isBroker(value: object): value is { url: string; token: string } {
  const { url, token } = value as { url?: unknown; token?: unknown };
  return typeof url === 'string' && typeof token === 'string';
}

const secrets = z
  .custom<Record<string, string>>(
    (value) => isPlainObject(value) && Object.values(value).every((each) => typeof each === 'string'),
    expected('secrets must be an object of strings'),
  )
  .optional()
  .transform((value) => ({ ...value }));

const signal = z
  .custom<AbortSignal>((value) => value instanceof AbortSignal, 'signal must be an AbortSignal')
  .optional()
  .transform((value) => value ?? null);

const requestSchema = z.object(
  {
    source: z.string('source must be a string').min(1, 'source must not be empty'),
    input: z
      .unknown()
      .optional()
      .transform((value, context) => {
        const json = value === undefined ? null : jsonOf(value);
        if (json === undefined) context.addIssue('input must be JSON, and not nest thousands of levels deep');
        return json ?? null;
      }),
    capabilities,
    secrets,
    bindings,
    signal,
    onLog: z
      .custom<(line: string) => void>((value) => typeof value === 'function', 'onLog must be a function')
      .optional()
      .transform((value) => value ?? null),
  },
  'a request must be an object',
);

/** Checks a request and fills in what is absent; or says in one sentence what is wrong. Values are never in it. */
export function checkRequest(request: unknown): CheckedRequest | { problem: string } {
  let parsed: ReturnType<typeof requestSchema.safeParse>;
  try {
    parsed = requestSchema.safeParse(request);
  } catch {
    // A getter, a Proxy: whatever it throws is the caller's own.
    return { problem: 'the request cannot be read: a property of it throws' };
  }
  if (!parsed.success) return { problem: parsed.error.issues[0]?.message ?? 'the request is malformed' };
  const { capabilities: checked, ...rest } = parsed.data;
  return { ...rest, ...checked };
}

/** Undefined for what is no JSON, or nests so deep that the engine gives up. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
