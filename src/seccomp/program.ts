/** One instruction of a classic BPF program, `struct sock_filter`. */
export interface Instruction {
  code: number;
  jt: number;
  jf: number;
  k: number;
}

// linux/bpf_common.h; a filter reads `struct seccomp_data` by absolute 32-bit loads only.
export const LOAD_WORD = 0x20;
export const AND = 0x54;
export const JUMP = 0x05;
export const JUMP_EQ = 0x15;
export const JUMP_GT = 0x25;
export const JUMP_GE = 0x35;
export const RETURN = 0x06;

/** Longest program the kernel takes (BPF_MAXINSNS). */
export const MAX_INSTRUCTIONS = 4096;

const MAX_OFFSET = 255;
const INSTRUCTION_BYTES = 8;

/** A place in a program under construction: the number of instructions from it to the end. */
export type Label = number;

/**
 * A program built from its end to its start: jumps only go forward, so each target is known when the jump is made, and a
 * target too far for a conditional jump's 8 bits gets a long jump in between.
 */
export class ProgramBuilder {
  readonly #reversed: Instruction[];
  readonly #returns = new Map<number, Label>();
  /** The start of `tail`. */
  readonly tail: Label;

  /** What is built goes before `tail`, a whole program. */
  constructor(tail: readonly Instruction[] = []) {
    this.#reversed = tail.toReversed();
    this.tail = tail.length;
  }

  /** Where `action` is returned; an existing return is used again while it is in reach. */
  answer(action: number): Label {
    const known = this.#returns.get(action);
    if (known !== undefined && this.#reversed.length - known < MAX_OFFSET - 2) return known;
    const label = this.#push(RETURN, action);
    this.#returns.set(action, label);
    return label;
  }

  load(offset: number, next: Label): Label {
    this.#fallInto(next);
    return this.#push(LOAD_WORD, offset);
  }

  and(mask: number, next: Label): Label {
    this.#fallInto(next);
    return this.#push(AND, mask);
  }

  branch(code: number, k: number, yes: Label, no: Label): Label {
    if (yes === no) return yes;
    // Room for the other branch's long jump, which would go between this instruction and its target.
    const far = (label: Label) => this.#reversed.length - label > MAX_OFFSET - 1;
    const onYes = far(yes) ? this.#jump(yes) : yes;
    const onNo = far(no) ? this.#jump(no) : no;
    const here = this.#reversed.length;
    return this.#push(code, k, here - onYes, here - onNo);
  }

  finish(start: Label): Instruction[] {
    this.#fallInto(start);
    return this.#reversed.toReversed();
  }

  #fallInto(next: Label): void {
    if (next !== this.#reversed.length) this.#jump(next);
  }

  #jump(target: Label): Label {
    return this.#push(JUMP, this.#reversed.length - target);
  }

  #push(code: number, k: number, jt = 0, jf = 0): Label {
    this.#reversed.push({ code, jt, jf, k });
    return this.#reversed.length;
  }
}

/** The bytes of an array of `struct sock_filter`, little-endian. */
export function encodeProgram(program: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(program.length * INSTRUCTION_BYTES);
  const view = new DataView(bytes.buffer);
  program.forEach(({ code, jt, jf, k }, position) => {
    const at = position * INSTRUCTION_BYTES;
    view.setUint16(at, code, true);
    view.setUint8(at + 2, jt);
    view.setUint8(at + 3, jf);
    view.setUint32(at + 4, k, true);
  });
  return bytes;
}

export function decodeProgram(bytes: Uint8Array): Instruction[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / INSTRUCTION_BYTES }, (_, position) => {
    const at = position * INSTRUCTION_BYTES;
    return { code: view.getUint16(at, true), jt: view.getUint8(at + 2), jf: view.getUint8(at + 3), k: view.getUint32(at + 4, true) };
  });
}
