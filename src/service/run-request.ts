import { checkRequest } from '../guest/request.js';
import type { GuestRequest } from '../index.js';
import { isPlainObject } from '../run/plain-object.js';
import { Refusal } from './refusal.js';

export type RunRequest = Omit<GuestRequest, 'signal' | 'onLog' | 'bindings'> & { bindings?: { url: string; token: string } | undefined };

/**
 * Takes the request out of a body. `null` stands for an absent part.
 * @throws Refusal
 */
export function runRequestOf(body: unknown): RunRequest {
  const { source, input, capabilities, secrets, bindings } = isPlainObject(body) ? body : {};
  if (typeof source !== 'string' || source === '' || !isPlainObject(capabilities)) {
    throw new Refusal('invalid-request', "missing 'source' or 'capabilities'");
  }
  const request: RunRequest = {
    source,
    input,
    capabilities: capabilities as NonNullable<RunRequest['capabilities']>,
    secrets: (secrets ?? undefined) as RunRequest['secrets'],
    bindings: brokerOf(bindings ?? undefined),
  };
  const checked = checkRequest(request);
  if ('problem' in checked) throw new Refusal('invalid-request', checked.problem);
  return request;
}

function brokerOf(bindings: unknown): RunRequest['bindings'] {
  if (bindings === undefined) return undefined;
  const { url, token } = isPlainObject(bindings) ? bindings : {};
  if (typeof url === 'string' && typeof token === 'string') return { url, token };
  throw new Refusal('invalid-request', 'bindings must be { url, token } as strings');
}
