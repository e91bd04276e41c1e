import type { Reply } from './messages.js';
import type { Binding } from './request.js';

/** Whoever answers the calls of one run. */
export interface Callee {
  /** Never rejects. */
  answer(method: string, args: unknown): Promise<Reply>;
  /** Gives up what is under way. */
  close(): void;
}

const MAX_CALLS = 100_000;

export const nobody: Callee = {
  answer: (method) => Promise.resolve(failed('bad_method', `${method} is not available`)),
  close: () => undefined,
};

/** Functions of the host that guests call by name. */
export class FunctionCallee implements Callee {
  readonly #functions: Readonly<Record<string, Binding>>;
  #calls = 0;

  constructor(functions: Readonly<Record<string, Binding>>) {
    this.#functions = functions;
  }

  async answer(method: string, args: unknown): Promise<Reply> {
    if (++this.#calls > MAX_CALLS) return failed('too_many_calls', `more than ${MAX_CALLS} calls`);
    const binding = Object.hasOwn(this.#functions, method) ? this.#functions[method] : undefined;
    if (binding === undefined) return failed('bad_method', `there is no host.${method}`);
    try {
      return { ok: true, value: await binding(args) };
    } catch (error) {
      return failed('', messageOf(error));
    }
  }

  close(): void {
    // What a function of the caller's does is its own affair.
  }
}

export function failed(code: string, message: string): Reply {
  return { ok: false, error: { code, message } };
}

function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return 'the call failed';
  }
}
