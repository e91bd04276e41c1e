import { randomInt } from 'node:crypto';

import type { Identity } from './plan.js';

/** One line of /proc/self/uid_map or gid_map. */
export interface IdRange {
  /** First id of the range, as this process sees it. */
  first: number;
  /** The id that it stands for in the parent user namespace. */
  outer: number;
  count: number;
}

/** The guest's name for itself. */
export const GUEST_ID = 1000;

/** Nobody's ids: above what distributions, subuid ranges and systemd (up to 0x6fffffff) hand out. */
const FIRST_OF_OWN = 0x70000000;
const LAST_OF_OWN = 0x7ffffffe;

/** 16- and 32-bit -1, which the kernel takes for "no id". */
const NOT_AN_ID = [0xffff, 0xffffffff];

export interface HostAccount {
  uid: number;
  gid: number;
  uidMap: readonly IdRange[];
  gidMap: readonly IdRange[];
}

/**
 * Whom the guest is on the host. A root host gives every run an id of its own, an ordinary account has none but itself.
 *
 * @returns null when the only id there is would be the machine's root.
 */
export function planIdentity(host: HostAccount, userNamespace: boolean): Identity | null {
  const outsideUid = host.uid === 0 ? pickId(host.uidMap) : host.uid;
  if (outsideUid === null) return null;
  const outsideGid = host.uid === 0 ? pickId(host.gidMap, outsideUid) : host.gid;
  if (outsideGid === null) return null;
  // Without a user namespace there is no second name.
  const inside = userNamespace ? { insideUid: GUEST_ID, insideGid: GUEST_ID } : { insideUid: outsideUid, insideGid: outsideGid };
  return { ...inside, outsideUid, outsideGid };
}

/** True when writable grants need an idmapped mount: the guest is another account than the one that owns them. */
export function needsIdMap(identity: Identity, host: HostAccount): boolean {
  return identity.outsideUid !== host.uid;
}

/** True for an id that only a guest of a root host has. */
export function isGuestUid(uid: number): boolean {
  return uid >= FIRST_OF_OWN && uid <= LAST_OF_OWN;
}

function pickId(map: readonly IdRange[], preferred?: number): number | null {
  if (preferred !== undefined && covers(map, preferred)) return preferred;
  if (map.some((range) => range.first <= FIRST_OF_OWN && lastOf(range) >= LAST_OF_OWN)) return randomInt(FIRST_OF_OWN, LAST_OF_OWN + 1);
  let highest = 0;
  for (const range of map) {
    let last = lastOf(range);
    if (NOT_AN_ID.includes(last)) last--;
    if (last >= range.first) highest = Math.max(highest, last);
  }
  if (highest > 0) return highest;
  // Only root is mapped. That is an ordinary account under another name, unless it is the parent's root as well.
  return map.some(({ first, outer }) => first === 0 && outer !== 0) ? 0 : null;
}

function covers(map: readonly IdRange[], id: number): boolean {
  return map.some((range) => range.first <= id && id <= lastOf(range));
}

function lastOf(range: IdRange): number {
  return range.first + range.count - 1;
}

export function parseIdMap(text: string): IdRange[] {
  const ranges: IdRange[] = [];
  for (const line of text.split('\n')) {
    const [first, outer, count] = line.trim().split(/\s+/).map(Number);
    if (first !== undefined && outer !== undefined && count !== undefined) ranges.push({ first, outer, count });
  }
  return ranges;
}
