import { describe, expect, it } from 'vitest';
import { ALLOW, EPERM, ERRNO, KILL_THREAD } from '../../src/seccomp/actions.js';
import { parseProfile } from '../../src/seccomp/profile.js';

const target = { architecture: 'x64', kernel: '6.1.0-18-amd64' } as const;
const parse = (document: object) => parseProfile(JSON.stringify({ defaultAction: 'SCMP_ACT_ERRNO', ...document }), target);
const withRule = (rule: object) => parse({ syscalls: [{ names: ['read'], action: 'SCMP_ACT_ALLOW', ...rule }] });
const withArg = (arg: object) => withRule({ args: [{ index: 0, value: 1, op: 'SCMP_CMP_EQ', ...arg }] });

describe('reading a profile', () => {
  it('gives actions as the kernel knows them', () => {
    expect(parse({}).defaultAction).toBe(ERRNO | EPERM);
    expect(parse({ defaultErrnoRet: 38 }).defaultAction).toBe(ERRNO | 38);
    expect(parse({ defaultAction: 'SCMP_ACT_KILL' }).defaultAction).toBe(KILL_THREAD);
    expect(withRule({ action: 'SCMP_ACT_ERRNO', errnoRet: 13 }).rules[0]?.action).toBe(ERRNO | 13);
    expect(withRule({}).rules[0]).toEqual({ names: ['read'], action: ALLOW, conditions: [] });
  });

  it('keeps all 64 bits of a value', () => {
    const text = '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"comment":"12345678901234567890","action":"SCMP_ACT_ALLOW","args":[{"index":1,"value":18446744073709551615,"op":"SCMP_CMP_NE"}]}]}';
    expect(parseProfile(text, target).rules[0]?.conditions[0]?.value).toBe(2n ** 64n - 1n);
  });

  it('leaves out what is included for a capability, another architecture or a newer kernel', () => {
    expect(withRule({ includes: { caps: ['CAP_SYS_ADMIN'] } }).rules).toHaveLength(0);
    expect(withRule({ includes: { arches: ['arm64'] } }).rules).toHaveLength(0);
    expect(withRule({ includes: { minKernel: '6.2' } }).rules).toHaveLength(0);
    expect(withRule({ excludes: { arches: ['amd64'] } }).rules).toHaveLength(0);
    expect(withRule({ excludes: { minKernel: '4.8' } }).rules).toHaveLength(0);
    expect(withRule({ includes: { arches: ['amd64'], minKernel: '4.8' }, excludes: { caps: ['CAP_SYS_ADMIN'] } }).rules).toHaveLength(1);
    expect(withRule({ includes: {}, excludes: {} }).rules).toHaveLength(1);
  });

  it.each([
    ['{', /^is not JSON/],
    ['[]', /must be an object in OCI seccomp format/],
    ['{}', /^defaultAction must be one of SCMP_ACT_ALLOW/],
  ])('refuses %s', (text, message) => {
    expect(() => parseProfile(text, target)).toThrow(TypeError);
    expect(() => parseProfile(text, target)).toThrow(message);
  });

  it.each([
    [() => parse({ defaultAction: 'SCMP_ACT_TRACE' }), /SCMP_ACT_TRACE and SCMP_ACT_NOTIFY need a supervisor/],
    [() => parse({ defaultErrnoRet: 4096 }), /^defaultErrnoRet must be an integer from 0 to 4095/],
    [() => parse({ defaultAction: 'SCMP_ACT_ALLOW', defaultErrnoRet: 1 }), /defaultErrnoRet has no meaning for SCMP_ACT_ALLOW/],
    [() => parse({ listenerPath: '/run/x' }), /^listenerPath is not supported/],
    [() => parse({ flags: ['SECCOMP_FILTER_FLAG_LOG'] }), /^flags must be empty/],
    [() => parse({ architectures: ['SCMP_ARCH_S390X'] }), /does not cover SCMP_ARCH_X86_64/],
    [() => parse({ archMap: [{ architecture: 'SCMP_ARCH_AARCH64' }] }), /does not cover SCMP_ARCH_X86_64/],
    [() => withRule({ name: 'read' }), /^syscalls\[0\]\.name is not supported/],
    [() => withRule({ names: [] }), /^syscalls\[0\]\.names/],
    [() => withRule({ action: 'ALLOW' }), /^syscalls\[0\]\.action must be one of/],
    [() => withRule({ errnoRet: 1 }), /^syscalls\[0\]\.errnoRet has no meaning for SCMP_ACT_ALLOW/],
    [() => withArg({ index: 6 }), /^syscalls\[0\]\.args\[0\]\.index/],
    [() => withArg({ op: 'EQ' }), /^syscalls\[0\]\.args\[0\]\.op must be one of SCMP_CMP_NE/],
    [() => withArg({ value: -1 }), /^syscalls\[0\]\.args\[0\]\.value must be an integer from 0 to 2\^64-1/],
    [() => withArg({ value: 1.5 }), /^syscalls\[0\]\.args\[0\]\.value must be/],
    [() => withArg({ value: '18446744073709551616' }), /^syscalls\[0\]\.args\[0\]\.value must be/],
    [() => withArg({ op: 'SCMP_CMP_MASKED_EQ', value: 1, valueTwo: 2 }), /can never match/],
    [() => withRule({ args: [{ index: 0, value: 1, op: 'SCMP_CMP_GE' }, { index: 0, value: 9, op: 'SCMP_CMP_LE' }] }), /names argument 0 twice/],
  ])('says what is wrong and where: %s', (attempt, message) => {
    expect(attempt).toThrow(TypeError);
    expect(attempt).toThrow(message);
  });
});
