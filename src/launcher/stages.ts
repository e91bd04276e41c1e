/** The stages of one launch in the order they run: the list of `native/shared/stages.def`, and a test compares the two. */
export const stages = [
  'plan',
  'descriptors',
  'cgroup',
  'sources',
  'namespaces',
  'attach',
  'id-map',
  'identity',
  'lifeline',
  'hostname',
  'loopback',
  'root',
  'view',
  'proc',
  'pivot',
  'seal',
  'capabilities',
  'no-new-privileges',
  'guest',
  'session',
  'resource-limits',
  'working-directory',
  'verify',
  'exec',
] as const;

export type Stage = (typeof stages)[number];
