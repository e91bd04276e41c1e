/**
 * Before Node 24, V8 refuses the compiled code that Node brings for its own modules where any flag differs from its default,
 * and the limit of the heap is a flag: 5 ms of every start. The heap has its limit by now and keeps it; the flag is not read
 * again.
 */
interface OldProcess {
  noDeprecation?: boolean;
  versions: { node: string };
  binding(name: 'v8'): { setFlagsFromString(flag: string): void };
}

const old = process as unknown as OldProcess;

if (parseInt(old.versions.node, 10) < 24) {
  // `node:v8` has the same, and takes 4 ms to load.
  old.noDeprecation = true;
  try {
    old.binding('v8').setFlagsFromString('--max-old-space-size=0');
  } catch {
    // It is slower without, and all the same.
  }
  delete old.noDeprecation;
}

export {};
