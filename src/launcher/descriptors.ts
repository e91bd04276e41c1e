import { close } from 'node:fs';

/** Closes descriptors that nobody has taken over. */
export function closeAll(descriptors: readonly number[]): void {
  for (const descriptor of descriptors) close(descriptor, () => undefined);
}
