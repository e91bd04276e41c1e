import { AND, JUMP, JUMP_EQ, JUMP_GE, JUMP_GT, LOAD_WORD, RETURN } from './program.js';
import type { Instruction } from './program.js';

/** What a filter sees of one call, `struct seccomp_data` without the instruction pointer. */
export interface Call {
  /** As of linux/audit.h. */
  architecture: number;
  number: number;
  /** Missing ones are 0. */
  args?: readonly bigint[];
}

/** Runs a filter as the kernel would; returns what it answers. Throws on an instruction that no filter of ours has. */
export function simulate(program: readonly Instruction[], call: Call): number {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, call.number >>> 0, true);
  data.setUint32(4, call.architecture >>> 0, true);
  call.args?.forEach((arg, index) => data.setBigUint64(16 + index * 8, BigInt.asUintN(64, arg), true));
  let accumulator = 0;
  for (let at = 0; at < program.length; at++) {
    const { code, jt, jf, k } = program[at] as Instruction;
    switch (code) {
      case LOAD_WORD:
        accumulator = data.getUint32(k, true);
        break;
      case AND:
        accumulator = (accumulator & k) >>> 0;
        break;
      case JUMP:
        at += k;
        break;
      case JUMP_EQ:
        at += accumulator === k ? jt : jf;
        break;
      case JUMP_GT:
        at += accumulator > k ? jt : jf;
        break;
      case JUMP_GE:
        at += accumulator >= k ? jt : jf;
        break;
      case RETURN:
        return k;
      default:
        throw new Error(`instruction ${at} has the unknown code 0x${code.toString(16)}`);
    }
  }
  throw new Error('the program ends without an answer');
}
