export { runSandboxed } from './run/run.js';
export type { EgressOptions } from './egress/policy.js';
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
export { createExecutor } from './guest/executor.js';
export type { Executor, ExecutorOptions, SandboxCounts } from './guest/executor.js';
export type { Binding, GuestRequest } from './guest/request.js';
export type { AnswerCode, GuestAnswer } from './guest/answer.js';
export { httpSandboxAdapter } from './client/adapter.js';
export type { HttpSandboxAdapter, HttpSandboxOptions } from './client/adapter.js';
