import { httpStatusByRefusal } from '../errors.js';

export type RefusalReason = keyof typeof httpStatusByRefusal;

/** A request that no run comes of. The message is for the caller, and never has anything of the request in it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;

  constructor(
    readonly reason: RefusalReason,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = httpStatusByRefusal[reason];
  }

  get body(): { ok: false; error: string; logs: [] } {
    return { ok: false, error: this.message, logs: [] };
  }
}
