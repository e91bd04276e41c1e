import type { Identity, Mount } from './plan.js';

const NSSWITCH = 'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n';

/** The sandbox's own user database: one user, whatever the host's accounts are. */
export function planAccountFiles(identity: Identity, home: string | undefined): Mount[] {
  const { insideUid, insideGid } = identity;
  // A colon or a newline would make other fields, or another user, of it.
  const directory = home !== undefined && /^\/[^:\n]*$/.test(home) ? home : '/';
  return [
    file('/etc/passwd', `guest:x:${insideUid}:${insideGid}:guest:${directory}:/bin/sh\n`),
    file('/etc/group', `guest:x:${insideGid}:\n`),
    file('/etc/nsswitch.conf', NSSWITCH),
  ];
}

function file(path: string, content: string): Mount {
  return { kind: 'file', path, mode: 0o644, content };
}
