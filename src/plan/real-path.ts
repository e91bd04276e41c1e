import { isUtf8 } from 'node:buffer';
import { realpath } from 'node:fs/promises';

/** Where nothing of the host is ever bound from: the sandbox has its own /proc and /dev, and no /sys. */
const KERNEL_TREES = /^\/(?:proc|sys|dev)(?:\/|$)/;

export function isKernelTree(path: string): boolean {
  return KERNEL_TREES.test(path);
}

/**
 * realpath(3), off the event loop: the path may lie on a mount that hangs.
 *
 * @throws an Error with the errno's name as `code`; EILSEQ when the end of it is not UTF-8 and so has no spelling here.
 */
export async function realPathOf(path: string): Promise<string> {
  const bytes = await realpath(path, { encoding: 'buffer' });
  if (isUtf8(bytes)) return bytes.toString('utf8');
  throw Object.assign(new Error(`${path} leads to a name that is not UTF-8`), { code: 'EILSEQ' });
}
