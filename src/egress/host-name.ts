import { domainToASCII, domainToUnicode } from 'node:url';

import { quotedHost } from '../run/option-words.js';
import { METADATA_NAMES } from './ranges.js';

// Letters, digits and underscores at both ends, hyphens between them (RFC 1123, and the underscore labels of RFC 8552).
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * The one form in which names are compared: ASCII, lower case, without a trailing dot.
 * Throws a TypeError that says what is wrong with a name which has none.
 */
export function canonicalName(text: string): string {
  const name = text.endsWith('.') ? text.slice(0, -1) : text;
  if (name === '') throw new TypeError('is empty');
  const odd = /[\u0000-\u0020\u007f%/\\?#@:[\]<>^|"'`{}()!$&*+,;=~]/.exec(name)?.[0];
  if (odd !== undefined) throw new TypeError(`contains ${JSON.stringify(odd)}, which is no part of a host name`);
  const ascii = toAscii(name);
  if (ascii.length > 253) throw new TypeError('is longer than 253 characters');
  for (const label of ascii.split('.')) checkLabel(label);
  return ascii;
}

/** As `canonicalName`, but null for what is not a name. For names that the guest asks for. */
export function asciiName(text: string): string | null {
  const name = text.toLowerCase().replace(/\.$/, '');
  return name.length <= 253 && name.split('.').every((label) => LABEL.test(label)) ? name : null;
}

/** The name that some cloud's metadata service goes by. */
export function isMetadataName(name: string): boolean {
  return METADATA_NAMES.includes(name);
}

/** RFC 6761: these mean the machine that asks, whatever DNS says. */
export function isLocalName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost') || name === 'localhost.localdomain';
}

// IDNA drops soft hyphens, folds full-width letters and turns look-alike dots into dots: what is dialled would not be what
// was read. A name passes only if the way back gives what was written, but for case.
function toAscii(name: string): string {
  const lower = name.toLowerCase();
  const encoded = lower.split('.').some((label) => label.startsWith('xn--'));
  if (!encoded && isAscii(name)) return lower;
  const odd = [...name].find((char) => !isAscii(char) && (isAscii(char.toLowerCase()) || !/[\p{L}\p{M}\p{N}]/u.test(char)));
  if (odd !== undefined) throw new TypeError(`contains ${JSON.stringify(odd)}, which is no letter or digit of a host name`);
  const ascii = domainToASCII(lower);
  if (ascii === '') throw new TypeError('is not a valid internationalised name');
  const back = domainToUnicode(ascii);
  const same = encoded ? domainToASCII(back) === lower : back === lower.normalize('NFC');
  if (!same) throw new TypeError(`does not survive IDNA unchanged: it would become ${quotedHost(ascii)}`);
  return ascii;
}

function isAscii(text: string): boolean {
  return /^[\u0000-\u007f]*$/.test(text);
}

function checkLabel(label: string): void {
  if (label === '') throw new TypeError('has an empty label');
  if (label.length > 63) throw new TypeError('has a label longer than 63 characters');
  if (!LABEL.test(label)) throw new TypeError(`has a label that is no host name's: ${JSON.stringify(label)}`);
}
