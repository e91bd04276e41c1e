import type { EgressOptions, Policy } from '../egress/policy.js';

/**
 * Compiles an allowlist. Only then is anything of src/egress loaded.
 *
 * @throws TypeError or RangeError that names field and index.
 */
export async function compileNetwork(network: 'none' | 'host' | EgressOptions): Promise<'none' | 'host' | Policy> {
  if (typeof network === 'string') return network;
  const [{ compilePolicy }, { ownAddresses }] = await Promise.all([
    import('../egress/policy.js'),
    import('../egress/own-addresses.js'),
    // The launcher's sockets must not wait for it.
    import('../egress/serve-sandbox.js'),
  ]);
  const policy = compilePolicy(network, await ownAddresses());
  return policy.names.size + policy.wildcards.size + policy.literals.size === 0 ? 'none' : policy;
}
