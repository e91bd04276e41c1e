export { runSandboxed } from './run/run.js';
export type { SandboxOptions } from './run/options.js';
export type {
  Connection,
  Enforcement,
  Fence,
  FenceReport,
  Outcome,
  SandboxFailure,
  SandboxResult,
  Usage,
} from './run/result.js';
