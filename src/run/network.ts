import type { EgressOptions, Policy } from '../egress/policy.js';
import { isPlainObject } from './plain-object.js';

/**
 * Compiles an allowlist. Only then is anything of src/egress loaded.
 *
 * @throws TypeError or RangeError that names field and index.
 */
export async function compileNetwork(network: 'none' | 'host' | EgressOptions): Promise<'none' | 'host' | Policy> {
  if (typeof network === 'string') return network;
  const taken = copyOf(network);
  const [{ compilePolicy }, { ownAddresses }] = await Promise.all([
    import('../egress/policy.js'),
    import('../egress/own-addresses.js'),
    // The launcher's sockets must not wait for it.
    import('../egress/serve-sandbox.js'),
  ]);
  const policy = compilePolicy(taken, await ownAddresses());
  return policy.names.size + policy.wildcards.size + policy.literals.size === 0 ? 'none' : policy;
}

/** As the options were at the call: whoever made it may change them while modules load. What is no list or object is judged later. */
function copyOf(options: EgressOptions): EgressOptions {
  const list = <T>(value: T): T => (Array.isArray(value) ? (value.slice() as T) : value);
  const { allow, allowPrivate, hosts } = options;
  return { ...options, allow: list(allow), allowPrivate: list(allowPrivate), hosts: isPlainObject(hosts) ? { ...hosts } : hosts };
}
